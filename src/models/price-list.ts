import { readFileSync } from "node:fs";
import { isObject } from "../session/check-arguments.ts";
import { SessionError, show } from "../session/errors.ts";
import { type ModelPrice, registerPrices } from "./prices.ts";
import { type Fields, fieldsOf, numberOf, stringOf } from "./wire/json-reader.ts";

const TOKENS_PRICED = 1_000_000;
let loaded: string | null = null;

/**
 * The prices in a public list of models, by `provider/model`: that of LiteLLM (dollars for a token, by model) or that of
 * models.dev (dollars for a million tokens, by provider). Entries without a price for input and output are left out.
 *
 * @throws {SessionError} `INVALID_OPTION` if the value has none of the two shapes; `from` names it in the message.
 */
export function pricesIn(list: unknown, from: string): Record<string, ModelPrice> {
  const found = Object.entries(isObject(list) ? list : {}).flatMap(([name, value]) => {
    const entry = fieldsOf(value);
    if (!isObject(entry["models"])) return liteLlmPrice(name, entry);
    return Object.entries(entry["models"]).flatMap(([id, model]) =>
      priced(`${name}/${id}`, modelsDevPrice(fieldsOf(model))),
    );
  });
  if (found.length > 0) return Object.fromEntries(found);
  throw new SessionError(
    "INVALID_OPTION",
    `${from} has no prices; give the JSON of LiteLLM (model_prices_and_context_window.json) or of models.dev (api.json).`,
  );
}

/**
 * Registers the prices of the file that `SKEIN_PRICES` names, once. Models do so when they are made, so that a wrong file is
 * found before anything is asked.
 *
 * @throws {SessionError} `INVALID_OPTION` for a file that cannot be read, is no JSON or has no prices.
 */
export function loadPricesOfEnvironment(): void {
  const path = process.env["SKEIN_PRICES"] ?? "";
  if (path === "" || path === loaded) return;
  registerPrices(pricesIn(readJson(path), `The file ${show(path)} of SKEIN_PRICES`));
  loaded = path;
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new SessionError("INVALID_OPTION", `The file ${show(path)} of SKEIN_PRICES cannot be read as JSON.`, {
      cause,
    });
  }
}

function liteLlmPrice(name: string, entry: Fields): [string, ModelPrice][] {
  const provider = stringOf(entry["litellm_provider"]);
  const perMillion = (field: string): number | undefined => {
    const perToken = numberOf(entry[field]);
    return perToken === undefined ? undefined : Number((perToken * TOKENS_PRICED).toPrecision(12));
  };
  if (provider === "") return [];
  return priced(name.startsWith(`${provider}/`) ? name : `${provider}/${name}`, {
    input: perMillion("input_cost_per_token"),
    output: perMillion("output_cost_per_token"),
    cacheRead: perMillion("cache_read_input_token_cost"),
    cacheWrite: perMillion("cache_creation_input_token_cost"),
    longCacheWrite: perMillion("cache_creation_input_token_cost_above_1hr"),
  });
}

function modelsDevPrice({ cost }: Fields): FoundPrice {
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite } = fieldsOf(cost);
  return {
    input: numberOf(input),
    output: numberOf(output),
    cacheRead: numberOf(cacheRead),
    cacheWrite: numberOf(cacheWrite),
  };
}

type FoundPrice = { readonly [Field in keyof ModelPrice]?: number | undefined };

function priced(name: string, found: FoundPrice): [string, ModelPrice][] {
  const fields = Object.entries(found).filter(([, value]) => value !== undefined && value >= 0);
  const price = Object.fromEntries(fields) as unknown as ModelPrice;
  return price.input === undefined || price.output === undefined ? [] : [[name, price]];
}
