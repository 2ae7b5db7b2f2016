import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionStore } from "../../src/session/store.ts";
import { checkStore } from "../../src/stores/doctor/check-store.ts";
import { copyStore } from "../../src/stores/copy/copy-store.ts";
import { canonicalJson, digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import type { Backend } from "../store-backends.ts";
import { type Answer, askAppend, askStore, LeaseBook } from "./ask-store.ts";
import { RequestDraw } from "./draw-request.ts";
import type { AppendRequest, Request } from "./request.ts";
import { SeededRandom } from "./seeded-random.ts";

const CLIENTS = 2;
const REQUESTS = 28;
const SHOWN_CHARACTERS_MAX = 3000;

/**
 * Asks a store, through several clients, what a seed says, and a memory store the same. Whatever is answered must be the
 * same, and in the end every log, the store's own books, and a copy of it all.
 *
 * Resolves to how often each kind of request had which outcome.
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
  readonly #modelLeases = new LeaseBook();
  readonly #leases = new LeaseBook();
  readonly #clients: SessionStore[] = [];
  readonly #asked: string[] = [];
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
    const draw = new RequestDraw(this.#random, this.#model);
    for (const request of draw.first()) await this.#ask(request);
    for (let i = 0; i < REQUESTS; i++) {
      const request = await draw.next();
      this.#asked.push(canonicalJson(request));
      if (request.kind === "reopen") await this.#reopen();
      else if (request.kind === "burst") await this.#burst(request.appends);
      else await this.#ask(request);
    }
    await this.#compareAll();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients, this.#model].map((store) => store.close()));
  }

  async #ask(request: Request): Promise<void> {
    this.#purged ||= request.kind === "purge";
    const expected = await askStore(this.#model, request, this.#modelLeases);
    const outcome = `${request.kind} ${"refused" in expected ? expected.refused : "done"}`;
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    this.#same(expected, await askStore(this.#random.pick(this.#clients), request, this.#leases));
  }

  /** What came first is for the store to say; told in that order, the model must have answered the same. */
  async #burst(appends: readonly AppendRequest[]): Promise<void> {
    const answers = await Promise.all(
      appends.map(async (append, index) => {
        const client = this.#clients[index % CLIENTS] as SessionStore;
        return { append, answer: await askAppend(client, append, this.#leases) };
      }),
    );
    const order = answers.map((each) => ({ ...each, place: versionIn(each.answer) }));
    order.sort((a, b) => a.place - b.place);
    for (const { append, answer } of order) this.#same(await askAppend(this.#model, append, this.#modelLeases), answer);
  }

  async #reopen(): Promise<void> {
    const index = this.#random.below(CLIENTS);
    // A lease goes on without the store object that took it; renewing it then would be refused.
    this.#leases.held.clear();
    this.#modelLeases.held.clear();
    await this.#clients[index]?.close();
    this.#clients[index] = await this.#backend.open(this.#directory);
  }

  async #compareAll(): Promise<void> {
    this.#asked.push("at the end");
    const [store] = this.#clients as [SessionStore];
    await using copy = openMemoryStore();
    const { failures } = await copyStore(store, copy);
    this.#same({ value: [] }, { value: failures.map(({ error }) => error.message) });
    for (const status of [false, true]) {
      const query = status ? { deleted: true } : {};
      await this.#ask({ kind: "list", query });
      await this.#ask({ kind: "count", query });
    }
    for (const { header } of (await this.#model.list()).items) {
      const digest = await digestOf(this.#model, header.id);
      for (const client of [...this.#clients, copy])
        this.#same({ value: digest }, { value: await digestOf(client, header.id) });
      await this.#ask({ kind: "checkpoints", session: header.id });
    }
    const { findings } = await checkStore(store);
    // A session made under a purged one's id is not what the purged one's forks were forked from.
    const wrong = findings.filter(({ kind }) => kind !== "fork" || !this.#purged);
    this.#same({ value: [] }, { value: wrong });
  }

  #same(expected: Answer, actual: Answer): void {
    const [wanted, given] = [canonicalJson(expected), canonicalJson(actual)];
    if (wanted === given) return;
    const place = [...wanted].findIndex((character, index) => character !== given[index]);
    const around = (text: string): string => text.slice(Math.max(0, place - 300), place + 700);
    throw new Error(
      [
        `Seed ${this.#seed} on the ${this.#backend.name} store, request ${this.#asked.length} of ${REQUESTS}:`,
        `asked:    ${this.#asked.at(-1)?.slice(0, SHOWN_CHARACTERS_MAX)}`,
        `expected: …${around(wanted)}`,
        `answered: …${around(given)}`,
        `Again: npm run torture -- --store "${this.#backend.name}" --seed ${this.#seed} --seeds 1`,
      ].join("\n"),
    );
  }
}

/** Where an append landed; one that was refused comes last. */
function versionIn(answer: Answer): number {
  return "refused" in answer ? Number.MAX_SAFE_INTEGER : (answer.value as { readonly version: number }).version;
}
