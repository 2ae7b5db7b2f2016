import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore } from "../../src/session/store.ts";
import { checkStore } from "../../src/stores/doctor/check-store.ts";
import { copyStore } from "../../src/stores/copy/copy-store.ts";
import { canonicalJson, digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import type { Backend } from "../store-backends.ts";
import { type Answer, performAppend, performRequest, LeaseRegistry } from "./perform-request.ts";
import { RequestGenerator } from "./generate-request.ts";
import type { AppendRequest, Request } from "./request.ts";
import { SeededRandom } from "./seeded-random.ts";

const CLIENTS = 2;
const REQUESTS = 28;
const SHOWN_CHARACTERS_MAX = 3000;

/**
 * Performs the random requests of a seed on a store, through several clients, and on a memory store (model-based testing).
 * All results must be equal. At the end, every log and a copy of the store must be equal, and `checkStore` must find nothing.
 *
 * Resolves to how often each kind of request had each outcome.
 *
 * @throws {Error} that names the seed and the first difference.
 */
export async function simulate(backend: Backend, seed: number): Promise<ReadonlyMap<string, number>> {
  const directory = await mkdtemp(join(tmpdir(), "skein-simulation-"));
  const simulation = new Simulation(backend, directory, seed);
  try {
    await simulation.run();
    return simulation.outcomes;
  } finally {
    await simulation.close();
    await rm(directory, { recursive: true, force: true });
  }
}

class Simulation {
  readonly #backend: Backend;
  readonly #directory: string;
  readonly #seed: number;
  readonly #random: SeededRandom;
  readonly #model: SessionStore = openMemoryStore();
  readonly #modelLeases = new LeaseRegistry();
  readonly #leases = new LeaseRegistry();
  readonly #clients: SessionStore[] = [];
  readonly #performed: string[] = [];
  #purged = false;
  readonly outcomes = new Map<string, number>();

  constructor(backend: Backend, directory: string, seed: number) {
    this.#backend = backend;
    this.#directory = directory;
    this.#seed = seed;
    this.#random = new SeededRandom(seed);
  }

  async run(): Promise<void> {
    for (let i = 0; i < CLIENTS; i++) this.#clients.push(await this.#backend.open(this.#directory));
    const generator = new RequestGenerator(this.#random, this.#model);
    for (const request of generator.first()) await this.#perform(request);
    for (let i = 0; i < REQUESTS; i++) {
      const request = await generator.next();
      this.#performed.push(canonicalJson(request));
      if (request.kind === "reopen") await this.#reopen();
      else if (request.kind === "burst") await this.#burst(request.appends);
      else await this.#perform(request);
    }
    await this.#compareAll();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients, this.#model].map((store) => store.close()));
  }

  async #perform(request: Request): Promise<void> {
    this.#purged ||= request.kind === "purge";
    const expected = await performRequest(this.#model, request, this.#modelLeases);
    const outcome = `${request.kind} ${"refused" in expected ? expected.refused : "done"}`;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    this.#expectSame(expected, await performRequest(this.#random.pick(this.#clients), request, this.#leases));
  }

  /** Performs appends concurrently. The store decides their order; the model must give the same results in that order. */
  async #burst(appends: readonly AppendRequest[]): Promise<void> {
    const answers = await Promise.all(
      appends.map(async (append, index) => {
        const client = this.#clients[index % CLIENTS] as SessionStore;
        return { append, answer: await performAppend(client, append, this.#leases) };
      }),
    );
    const order = answers.map((each) => ({ ...each, version: versionIn(each.answer) }));
    order.sort((a, b) => a.version - b.version);
    for (const { append, answer } of order)
      this.#expectSame(await performAppend(this.#model, append, this.#modelLeases), answer);
  }

  async #reopen(): Promise<void> {
    const index = this.#random.below(CLIENTS);
    // A lease stays live after its store object is closed, but can no longer be renewed through that object.
    this.#leases.held.clear();
    this.#modelLeases.held.clear();
    await this.#clients[index]?.close();
    this.#clients[index] = await this.#backend.open(this.#directory);
  }

  async #compareAll(): Promise<void> {
    this.#performed.push("at the end");
    const [store] = this.#clients as [SessionStore];
    await using copy = openMemoryStore();
    const { failures } = await copyStore(store, copy);
    this.#expectSame({ value: [] }, { value: failures.map(({ error }) => error.message) });
    for (const status of [false, true]) {
      const query = status ? { deleted: true } : {};
      await this.#perform({ kind: "list", query });
      await this.#perform({ kind: "count", query });
    }
    for (const { header } of (await this.#model.list()).items) {
      const digest = await digestOf(this.#model, header.id);
      for (const client of [...this.#clients, copy])
        this.#expectSame({ value: digest }, { value: await digestOf(client, header.id) });
      await this.#perform({ kind: "checkpoints", session: header.id });
    }
    const { findings } = await checkStore(store);
    // A new session with the id of a purged one is not the source of the forks of the purged one.
    const wrong = findings.filter(({ kind }) => kind !== "fork" || !this.#purged);
    this.#expectSame({ value: [] }, { value: wrong });
  }

  #expectSame(expected: Answer, actual: Answer): void {
    const [wanted, given] = [canonicalJson(expected), canonicalJson(actual)];
    if (wanted === given) return;
    const position = [...wanted].findIndex((character, index) => character !== given[index]);
    const around = (text: string): string => text.slice(Math.max(0, position - 300), position + 700);
    throw new Error(
      [
        `Seed ${this.#seed} on the ${this.#backend.name} store, request ${this.#performed.length} of ${REQUESTS}:`,
        `request:  ${this.#performed.at(-1)?.slice(0, SHOWN_CHARACTERS_MAX)}`,
        `expected: …${around(wanted)}`,
        `actual:   …${around(given)}`,
        `Reproduce: npm run torture -- --store "${this.#backend.name}" --seed ${this.#seed} --seeds 1`,
      ].join("\n"),
    );
  }
}

/** The version after an append; a refused append comes last. */
function versionIn(answer: Answer): number {
  return "refused" in answer ? Number.MAX_SAFE_INTEGER : (answer.value as { readonly version: number }).version;
}
