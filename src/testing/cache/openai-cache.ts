import { SessionError } from "../../session/errors.ts";
import { hasBreakpoints, keepsForADay } from "../../models/cache-rules.ts";
import { chained, type Fields, fieldsOf, listOf, tokensOf } from "./cache-block.ts";
import type { PromptCache, PromptCacheUsage } from "./prompt-cache.ts";

const TOKENS_MIN = 1024;
/** Models without breakpoints cache in steps of so many tokens. */
const STEP_TOKENS = 128;
/** The beginning by which a request finds its server. */
const ROUTED_TOKENS = 256;
/** A server takes so many requests of one beginning and key in a minute; others go to another one. */
const REQUESTS_A_MINUTE = 15;
const MINUTE_MS = 60_000;
const WRITES_MAX = 4;
const BREAKPOINTS_READ = 80;
const IN_MEMORY_MS = 5 * MINUTE_MS;
const BREAKPOINT_MS = 30 * MINUTE_MS;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The cache of one server of the provider: for the hash of each prefix, when it expires. */
type Server = Map<string, number>;

/** An item of a request, in the order in which the provider reads them. */
interface Item {
  readonly rendered: unknown;
  readonly tokens: number;
  /** Whether the item is not the model's own, so that a breakpoint can be set there. */
  readonly isAsked: boolean;
  readonly isMarked: boolean;
}

/** The prompt cache of the Chat Completions API and the Responses API. */
export class OpenAICache implements PromptCache {
  readonly #model: string;
  readonly #clock: () => number;
  readonly #servers = new Map<string, Server>();
  /** When each server of a route was asked in the last minute. */
  readonly #asked = new Map<string, number[][]>();

  constructor(model: string, clock: () => number) {
    this.#model = model;
    this.#clock = clock;
  }

  ask(body: object): PromptCacheUsage {
    const fields = fieldsOf(body);
    const model = typeof fields["model"] === "string" ? fields["model"] : this.#model;
    const items = itemsOf(fields);
    const steps = stepsOf(items, model);
    const server = this.#route(fields, steps, model);
    return hasBreakpoints(model)
      ? this.#askAtBreakpoints(fields, items, server)
      : this.#askBySteps(fields, steps, items, server, model);
  }

  /** A server is found by the beginning of a request and its key; while it has had too many in a minute, the next one is asked. */
  #route(body: Fields, steps: readonly string[], model: string): Server {
    const beginning = steps[ROUTED_TOKENS / STEP_TOKENS - 1] ?? steps.at(-1) ?? "";
    const route = chained(beginning, [model, body["prompt_cache_key"] ?? null]);
    const now = this.#clock();
    const recent = (this.#asked.get(route) ?? []).map((times) => times.filter((at) => at > now - MINUTE_MS));
    const free = recent.findIndex((times) => times.length < REQUESTS_A_MINUTE);
    const index = free < 0 ? recent.length : free;
    recent[index] = [...(recent[index] ?? []), now];
    this.#asked.set(route, recent);
    const name = `${route} ${index}`;
    const server = this.#servers.get(name) ?? new Map<string, number>();
    this.#servers.set(name, server);
    return server;
  }

  #askBySteps(
    body: Fields,
    steps: readonly string[],
    items: readonly Item[],
    server: Server,
    model: string,
  ): PromptCacheUsage {
    const now = this.#clock();
    const isForADay = body["prompt_cache_retention"] === "24h" || keepsForADay(model);
    const until = now + (isForADay ? DAY_MS : IN_MEMORY_MS);
    const hit = steps.findLastIndex((hash) => (server.get(hash) ?? 0) > now) + 1;
    const total = sumOf(items);
    if (total >= TOKENS_MIN) for (const hash of steps) server.set(hash, until);
    const read = hit * STEP_TOKENS < TOKENS_MIN ? 0 : hit * STEP_TOKENS;
    return { read, written: 0, writtenForAnHour: 0, fresh: total - read };
  }

  #askAtBreakpoints(body: Fields, items: readonly Item[], server: Server): PromptCacheUsage {
    const now = this.#clock();
    const isExplicit = fieldsOf(body["prompt_cache_options"])["mode"] === "explicit";
    let [hash, tokens] = ["", 0];
    const ends = items.map((item) => {
      hash = chained(hash, item.rendered);
      tokens += item.tokens;
      return { ...item, hash, tokens };
    });
    const known = ends.filter(({ isAsked, isMarked }) => (isExplicit ? isMarked : isAsked)).slice(-BREAKPOINTS_READ);
    const marked = ends.filter(({ isMarked }) => isMarked);
    const implicit = isExplicit ? [] : known.slice(-1);
    const written = [
      ...marked.filter((end) => !implicit.includes(end)).slice(implicit.length - WRITES_MAX),
      ...implicit,
    ].filter((end) => end.tokens >= TOKENS_MIN);
    const hit = [...known, ...marked]
      .filter((end) => (server.get(end.hash) ?? 0) > now)
      .sort((a, b) => b.tokens - a.tokens)[0];
    const read = hit?.tokens ?? 0;
    if (hit !== undefined) server.set(hit.hash, now + BREAKPOINT_MS);
    for (const end of written) server.set(end.hash, now + BREAKPOINT_MS);
    const last = Math.max(read, ...written.map((end) => end.tokens));
    return { read, written: last - read, writtenForAnHour: 0, fresh: tokens - last };
  }
}

function sumOf(items: readonly Item[]): number {
  return items.reduce((sum, { tokens }) => sum + tokens, 0);
}

function itemsOf(body: Fields): Item[] {
  const said = listOf(body["messages"] ?? body["input"]);
  if (said.length === 0) throw new SessionError("INVALID_OPTION", "The request has no messages.");
  const schema = body["response_format"] ?? fieldsOf(body["text"])["format"];
  const ahead = [...listOf(body["tools"]), ...(schema === undefined ? [] : [schema])];
  const { instructions } = body;
  return [
    ...ahead.map((rendered) => itemOf(rendered, tokensOf(rendered), false)),
    ...(typeof instructions === "string" ? [itemOf(["system", instructions], tokensOf(instructions), false)] : []),
    ...said.flatMap(messageItems),
  ];
}

function itemOf(rendered: unknown, tokens: number, isAsked: boolean, isMarked = false): Item {
  return { rendered, tokens, isAsked, isMarked };
}

/** A message as an item for each of its parts, so that a text is the same as a part that has it. */
function messageItems(message: unknown): Item[] {
  const { role = "assistant", content, output, tool_calls: calls, ...rest } = fieldsOf(message);
  const isOutput = rest["type"] === "function_call_output";
  const said = isOutput ? output : content;
  const isAsked = isOutput || (role !== "assistant" && typeof said !== "undefined");
  const parts = typeof said === "string" ? [said] : listOf(said);
  const items = parts.map((part) => {
    const { prompt_cache_breakpoint: mark, ...bare } = fieldsOf(part);
    const text = typeof part === "string" ? part : typeof bare["text"] === "string" ? bare["text"] : null;
    const shown = text ?? bare;
    return itemOf([role, rest, shown], tokensOf(shown), isAsked, mark !== undefined);
  });
  const others = [...listOf(calls), ...(said === undefined ? [rest] : [])];
  return [...items, ...others.map((other) => itemOf([role, other], tokensOf(other), false))];
}

/** The hashes of the prefixes of a request that end at each step of so many tokens. */
function stepsOf(items: readonly Item[], model: string): string[] {
  const steps: string[] = [];
  let hash = chained("", model);
  let [text, start] = ["", 0];
  const width = STEP_TOKENS * 4;
  for (const { rendered, tokens } of items) {
    // The content of an item as the model reads it, with as many characters as it has tokens; its other fields change
    // it from the first character on.
    const shown = Array.isArray(rendered) ? (rendered.at(-1) as unknown) : rendered;
    const said = typeof shown === "string" ? shown : JSON.stringify(shown);
    text += said.padEnd(tokens * 4, " ").slice(0, tokens * 4);
    hash = chained(hash, Array.isArray(rendered) ? rendered.slice(0, -1) : "");
    for (; start + width <= text.length; start += width) {
      hash = chained(hash, text.slice(start, start + width));
      steps.push(hash);
    }
  }
  return steps;
}
