import { SessionError } from "../../session/errors.ts";
import { chained, type Fields, fieldsOf, listOf, tokensOf } from "./cache-block.ts";
import type { PromptCache, PromptCacheUsage } from "./prompt-cache.ts";

const MARKERS_MAX = 4;
/** How many positions the provider checks for each marker, its own included. */
const POSITIONS_CHECKED = 20;
const LIFETIME_MS = { "5m": 5 * 60_000, "1h": 60 * 60_000 } as const;

type Lifetime = keyof typeof LIFETIME_MS;

/** The end of a block in the order in which the provider reads them. */
interface Position {
  /** Of the whole prefix up to here. */
  readonly hash: string;
  readonly tokens: number;
  readonly marker: Lifetime | null;
}

interface Cached {
  readonly lifetime: Lifetime;
  expiresAt: number;
}

/** The prompt cache of the Messages API. */
export class AnthropicCache implements PromptCache {
  readonly #model: string;
  readonly #clock: () => number;
  readonly #entries = new Map<string, Cached>();

  constructor(model: string, clock: () => number) {
    this.#model = model;
    this.#clock = clock;
  }

  ask(body: object): PromptCacheUsage {
    const fields = fieldsOf(body);
    const model = typeof fields["model"] === "string" ? fields["model"] : this.#model;
    const positions = positionsOf(fields, model);
    const total = positions.at(-1)?.tokens ?? 0;
    const marked = positions.flatMap(({ marker, tokens }, index) =>
      marker !== null && tokens >= leastOf(model) ? [index] : [],
    );
    const now = this.#clock();
    const hit = Math.max(-1, ...marked.map((index) => this.#hitBefore(positions, index, now)));
    const read = positions[hit]?.tokens ?? 0;
    // An entry lives on from its last use, and so do those that it begins with.
    for (const index of [...marked.filter((at) => at <= hit), hit]) this.#refresh(positions[index], now);
    let written = 0;
    let writtenForAnHour = 0;
    for (const index of marked.filter((at) => at > hit)) {
      const { hash, tokens, marker } = positions[index] as Position;
      const lifetime = marker as Lifetime;
      if (lifetime === "1h") writtenForAnHour = tokens - read;
      written = tokens - read;
      this.#entries.set(hash, { lifetime, expiresAt: now + LIFETIME_MS[lifetime] });
    }
    return { read, written, writtenForAnHour, fresh: total - read - written };
  }

  /** The last matching position among those that the provider checks before a marker; -1 if there is none. */
  #hitBefore(positions: readonly Position[], marker: number, now: number): number {
    for (let index = marker; index >= 0 && index > marker - POSITIONS_CHECKED; index--) {
      const entry = this.#entries.get(positions[index]?.hash ?? "");
      if (entry !== undefined && entry.expiresAt > now) return index;
    }
    return -1;
  }

  #refresh(position: Position | undefined, now: number): void {
    const entry = this.#entries.get(position?.hash ?? "");
    if (entry !== undefined && entry.expiresAt > now) entry.expiresAt = now + LIFETIME_MS[entry.lifetime];
  }
}

/** The least tokens of a prefix that is cached, by the model. */
function leastOf(model: string): number {
  if (/(opus-5|fable-5|mythos-5|sonnet-5-5|haiku-5)/.test(model)) return 512;
  if (/opus-4-[56]|haiku-4-5/.test(model)) return 4096;
  return /opus-4-7|haiku-3|3-5-haiku|3-haiku/.test(model) ? 2048 : 1024;
}

/** Whether a model is shown the thinking of earlier turns; from others, it is left out once someone says something new. */
function keepsThinking(model: string): boolean {
  return !/^claude-3|(sonnet|haiku)-4(-[0-5])?([-@]\d{8}|$)|opus-4(-[01])?([-@]\d{8}|$)/.test(model);
}

function positionsOf(body: Fields, model: string): Position[] {
  const { tools, system, messages, thinking, tool_choice: choice, output_config: output } = body;
  if (!Array.isArray(messages) || messages.length === 0)
    throw new SessionError("INVALID_OPTION", "The request has no messages.");
  const { format, ...effort } = fieldsOf(output);
  const said = textOfParts(messages.map(fieldsOf), keepsThinking(model));
  const hasImages = said.some(({ block }) => JSON.stringify(block).includes('"type":"image"'));
  const positions: Position[] = [];
  let [hash, tokens, markers] = [chained("", model), 0, 0];
  const add = (block: unknown, context: unknown): void => {
    const { cache_control: marker, ...rest } = fieldsOf(block);
    if (marker !== undefined && ++markers > MARKERS_MAX)
      throw new SessionError("INVALID_OPTION", `The request has more than ${MARKERS_MAX} markers (cache_control).`);
    hash = chained(hash, [context, rest]);
    tokens += tokensOf(rest);
    positions.push({ hash, tokens, marker: lifetimeOf(marker) });
  };
  for (const tool of listOf(tools)) add(tool, "tool");
  // Later parts depend on these settings: changing one of them invalidates the later parts, and no earlier part.
  hash = chained(hash, ["system", format ?? null]);
  const instructions = typeof system === "string" ? [{ type: "text", text: system }] : listOf(system);
  for (const block of instructions) add(block, "system");
  hash = chained(hash, ["messages", choice ?? null, thinking ?? null, effort, hasImages]);
  for (const { role, block } of said) add(block, role);
  const last = positions.at(-1);
  const whole = lifetimeOf(body["cache_control"]);
  if (whole !== null && last !== undefined) positions[positions.length - 1] = { ...last, marker: whole };
  return positions;
}

/** The blocks of messages, as the model is shown them. */
function textOfParts(messages: readonly Fields[], isThinkingKept: boolean): { role: unknown; block: unknown }[] {
  const blocks = messages.flatMap(({ role, content }) => {
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : listOf(content);
    return parts.map((block) => ({ role, block }));
  });
  if (isThinkingKept) return blocks;
  const asked = blocks.findLastIndex(({ role, block }) => role === "user" && fieldsOf(block)["type"] !== "tool_result");
  return blocks.filter(({ block }, index) => index > asked || !/thinking$/.test(String(fieldsOf(block)["type"])));
}

function lifetimeOf(marker: unknown): Lifetime | null {
  if (marker === undefined || marker === null) return null;
  return fieldsOf(marker)["ttl"] === "1h" ? "1h" : "5m";
}
