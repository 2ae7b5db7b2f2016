import type { Entry } from "../log/entry.ts";
import type { SessionHead } from "../log/fold.ts";
import { type OpenRun, stepRuns } from "../log/open-runs.ts";
import type { Message } from "../message.ts";

/** The most tools in the result. */
const TOOLS_MAX = 50;

/** The latency of model answers: half of them took at most the median, 19 of 20 at most the 95th percentile. */
export interface Latency {
  readonly answers: number;
  readonly medianMs: number;
  readonly p95Ms: number;
}

/** The number of calls of a tool, and of failed ones. */
export interface ToolCount {
  readonly tool: string;
  readonly calls: number;
  readonly failed: number;
}

/** The latency of answers and the tools that were called, in the latest sessions. */
export interface CallAnalytics {
  /** The number of sessions read. */
  readonly sessions: number;
  /** True if all matching sessions were read completely; if false, older ones were left out. */
  readonly complete: boolean;
  /** Null if there was no answer of a run. */
  readonly latency: Latency | null;
  /** By UTC date, oldest first. */
  readonly byDay: readonly ({ readonly day: string } & Latency)[];
  /** By `provider/model`. */
  readonly byModel: readonly ({ readonly model: string | null } & Latency)[];
  readonly byUser: readonly ({ readonly user: string | null } & Latency)[];
  /** The most called first. */
  readonly tools: readonly ToolCount[];
}

/** The latency of one answer. */
interface Sample {
  readonly tookMs: number;
  readonly day: string;
  readonly model: string | null;
  readonly user: string | null;
}

/** Collects latencies and tool calls, session by session. */
export class CallSamples {
  readonly #samples: Sample[] = [];
  readonly #tools = new Map<string, { calls: number; failed: number }>();

  /** Adds consecutive entries of a session's log; `counts` selects by time the entries to measure. */
  add({ header }: SessionHead, entries: readonly Entry[], counts: (time: string) => boolean): void {
    const times = new Map<string, number>();
    let open: readonly OpenRun[] = [];
    let startedMs: number | null = null;
    for (const entry of entries) {
      const atMs = Date.parse(entry.timestamp);
      const before = startedIn(open);
      open = stepRuns(open, entry);
      const run = startedIn(open);
      if (run?.runId !== before?.runId) startedMs = run === undefined ? null : atMs;
      if (entry.type === "message" && counts(entry.timestamp)) {
        this.#addTools(entry.message);
        const askedMs = times.get(entry.parentId ?? "") ?? null;
        if (startedMs !== null && askedMs !== null && isAnswer(entry.message)) {
          const tookMs = Math.max(0, atMs - Math.max(askedMs, startedMs));
          const day = entry.timestamp.slice(0, 10);
          this.#samples.push({ tookMs, day, model: modelOf(entry.message), user: header.userId });
        }
      }
      times.set(entry.id, atMs);
    }
  }

  /** Computes the result from everything that was added. */
  sum(scope: Pick<CallAnalytics, "sessions" | "complete">): CallAnalytics {
    const samples = this.#samples;
    const tools = [...this.#tools]
      .map(([tool, count]) => ({ tool, ...count }))
      .sort((a, b) => b.calls - a.calls || (a.tool < b.tool ? -1 : 1));
    return {
      ...scope,
      latency: samples.length === 0 ? null : latencyOf(samples),
      byDay: groupBy(samples, ({ day }) => day).map(([day, some]) => ({ day, ...latencyOf(some) })),
      byModel: groupBy(samples, ({ model }) => model).map(([model, some]) => ({ model, ...latencyOf(some) })),
      byUser: groupBy(samples, ({ user }) => user).map(([user, some]) => ({ user, ...latencyOf(some) })),
      tools: tools.slice(0, TOOLS_MAX),
    };
  }

  #addTools(message: Message): void {
    if (message.role === "assistant") for (const { name } of message.toolCalls ?? []) this.#toolOf(name).calls += 1;
    if (message.role === "tool" && message.isError === true) this.#toolOf(message.name).failed += 1;
  }

  #toolOf(name: string): { calls: number; failed: number } {
    const found = this.#tools.get(name) ?? { calls: 0, failed: 0 };
    this.#tools.set(name, found);
    return found;
  }
}

function startedIn(open: readonly OpenRun[]): OpenRun | undefined {
  return open.find(({ state }) => state === "started");
}

/** Whether a message is a complete answer of a model: an aborted one has no meaningful latency. */
function isAnswer(message: Message): boolean {
  return message.role === "assistant" && message.stopReason !== "aborted" && message.stopReason !== "error";
}

function modelOf(message: Message): string | null {
  if (message.role !== "assistant" || message.provider === undefined || message.model === undefined) return null;
  return `${message.provider}/${message.model}`;
}

/** Nearest-rank percentiles, so that every figure is a measured value. */
function latencyOf(samples: readonly Sample[]): Latency {
  const sorted = samples.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const rank = (part: number): number => sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
  return { answers: sorted.length, medianMs: rank(0.5), p95Ms: rank(0.95) };
}

/** Groups samples by a key, sorted by the keys; null comes first. */
function groupBy<K extends string | null>(
  samples: readonly Sample[],
  keyOf: (sample: Sample) => K,
): readonly (readonly [K, readonly Sample[]])[] {
  const found = new Map<K, Sample[]>();
  for (const sample of samples) {
    const key = keyOf(sample);
    const others = found.get(key);
    if (others === undefined) found.set(key, [sample]);
    else others.push(sample);
  }
  return [...found].sort(([a], [b]) => (a === null ? -1 : b === null ? 1 : a < b ? -1 : 1));
}
