import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { postgresUrl } from "./postgres-server.ts";
import { redisPrefix, redisSkip, redisUrl } from "./redis-server.ts";
import { skipBecause } from "./skip.ts";
import { type Outcome, type Request, StoreModel } from "./store-model/model.ts";
import { operation, type Race, requestOf } from "./store-model/operation.ts";
import { StoreProcess } from "./store-model/store-process.ts";

/** How many random sequences run on each store; `SKEIN_MODEL_RUNS=500` runs more. A failure prints its seed. */
const RUNS = Number(process.env.SKEIN_MODEL_RUNS ?? 3);
const TIME_MS = Math.max(120_000, RUNS * 10_000);

/** Outcomes that the sequences must have produced together, so that the test cannot become trivial unnoticed. */
const EXPECTED = [
  ...["append done", "append CONFLICT", "append ENTRY_EXISTS", "append UNKNOWN_ENTRY", "append INVALID_ENTRY"],
  "append LEASE_LOST",
  ...["append SESSION_NOT_FOUND", "create SESSION_EXISTS", "fork done", "fork SESSION_NOT_FOUND", "fork UNKNOWN_ENTRY"],
  ...["fork SESSION_EXISTS", "delete done", "undelete done", "purge done", "read done", "entry done", "list done"],
  ...["count done", "search done", "lease done", "lease SESSION_BUSY", "lease SESSION_NOT_FOUND", "renew done"],
  "renew LEASE_LOST",
  ...["release done", "leaseOf done", "saveCheckpoint done", "saveCheckpoint CHECKPOINT_EXISTS", "checkpoints done"],
  ...["loadCheckpoint done", "deleteCheckpoint done"],
];

/** The address of an empty store of each kind for `answer.mjs`, and how many processes can use it. */
const stores: Readonly<Record<string, { processes: number; address(directory: string): Promise<string> }>> = {
  memory: { processes: 1, address: async () => "memory:" },
  jsonl: { processes: 3, address: async (directory) => `jsonl:${directory}` },
  sqlite: { processes: 3, address: async (directory) => `sqlite:${join(directory, "skein.db")}` },
  postgres: { processes: 3, address: async () => `${await postgresUrl()}#skein_${newName()}` },
  redis: { processes: 3, address: async () => `${await redisUrl()}#${redisPrefix}:${newName()}` },
};

describe.for(Object.entries(stores))("the %s store", ([name, { processes: count, address }]) => {
  test(`behaves like the model, with random operations of ${count} ${count === 1 ? "process" : "processes"}`, {
    timeout: TIME_MS * 2,
  }, async (test) => {
    if (name === "redis" && redisSkip !== null) skipBecause(test, redisSkip);
    const processes = Array.from({ length: count }, (_, number) => new StoreProcess(number));
    onTestFinished(async () => void (await Promise.all(processes.map((process) => process.end()))));
    const outcomes = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 150, maxLength: 250, size: "max" }), async (operations) => {
        const directory = await mkdtemp(join(tmpdir(), "skein-model-"));
        try {
          await new Trial(processes, await address(directory), outcomes).run(operations);
        } finally {
          await rm(directory, { recursive: true, force: true });
        }
      }),
      // A failing sequence is shrunk until the time limit.
      { numRuns: RUNS, interruptAfterTimeLimit: TIME_MS, markInterruptAsFailure: true },
    );
    expect(EXPECTED.filter((outcome) => !outcomes.has(outcome))).toEqual([]);
  });
});

type Operations = typeof operation extends fc.Arbitrary<infer T> ? readonly T[] : never;

/** One sequence of operations, on a store and on the model. */
class Trial {
  readonly #processes: readonly StoreProcess[];
  readonly #address: string;
  readonly #outcomes: Set<string>;
  readonly #model = new StoreModel();
  #races = 0;

  constructor(processes: readonly StoreProcess[], address: string, outcomes: Set<string>) {
    this.#processes = processes;
    this.#address = address;
    this.#outcomes = outcomes;
  }

  async run(operations: Operations): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.open(this.#address)));
    for (const session of ["s0", "s1", "s2"]) await this.#ask(0, { kind: "create", session });
    for (const { process, asked } of operations) {
      const number = process % this.#processes.length;
      if (asked.kind === "reopen") await this.#reopen(number);
      else if (asked.kind === "race") await this.#race(asked.to, asked.session, asked.timestamp);
      else {
        for (const request of requestOf(this.#model, number, asked)) {
          await this.#ask(number, request);
          // A retry may come from another process.
          const again = request.kind === "append" && !request.leased && asked.kind === "append" && asked.twice;
          if (again) await this.#ask((number + 1) % this.#processes.length, request);
        }
      }
    }
    await this.#compareAll();
  }

  async #ask(number: number, request: Request): Promise<void> {
    const expected = this.#model.ask(number, request);
    this.#outcomes.add(`${request.kind} ${typeof expected === "string" ? expected : "done"}`);
    expect(await this.#process(number).ask(request), `${number}: ${JSON.stringify(request)}`).toEqual(expected);
  }

  /** Sends the same kind of request from all processes concurrently. The model must give the same answers in the store's order. */
  async #race(kind: Race, session: string, timestamp: string): Promise<void> {
    const race = this.#races++;
    const request = (number: number): Request => {
      if (kind !== "append") return { kind, session };
      const drafts = [{ id: `r${race}-${number}`, type: "message" as const, value: "two", timestamp }];
      return { kind, session, drafts, options: {}, leased: false };
    };
    const answers = await Promise.all(
      this.#processes.map(async (process, number) => ({ number, outcome: await process.ask(request(number)) })),
    );
    for (const { number, outcome } of answers.sort((a, b) => positionOf(a.outcome) - positionOf(b.outcome))) {
      const expected = this.#model.ask(number, request(number));
      expect(outcome, `${number}, concurrently: ${JSON.stringify(request(number))}`).toEqual(expected);
    }
  }

  async #reopen(number: number): Promise<void> {
    if (this.#processes.length === 1) return;
    await this.#process(number).open(this.#address);
    this.#model.reopen(number);
  }

  async #compareAll(): Promise<void> {
    const live = this.#model.ask(0, { kind: "list", query: {}, limit: 100 }) as readonly string[];
    for (const number of this.#processes.keys()) {
      await this.#ask(number, { kind: "list", query: {}, limit: 100 });
      await this.#ask(number, { kind: "list", query: { deleted: true }, limit: 100 });
      for (const session of live) {
        await this.#ask(number, { kind: "head", session });
        await this.#ask(number, { kind: "checkpoints", session });
        await this.#process(number).checkHeadIsFold(session);
      }
    }
  }

  #process(number: number): StoreProcess {
    return this.#processes[number] as StoreProcess;
  }
}

/** The position in a race of the process that got this outcome: successful requests come before refused ones. */
function positionOf(outcome: Outcome): number {
  if (typeof outcome === "string" || outcome[0] === false) return Number.MAX_SAFE_INTEGER;
  return typeof outcome[0] === "number" ? outcome[0] : 0;
}

function newName(): string {
  return randomUUID().replaceAll("-", "").slice(0, 24);
}
