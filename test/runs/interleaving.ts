import { drainRuns } from "../../src/agent/active-runs.ts";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import type { LoopRun } from "../../src/agent/loop-run.ts";
import type { RunEvent } from "../../src/agent/run-event.ts";
import type { SessionRun } from "../../src/agent/session-run.ts";
import type { RunState } from "../../src/session/log/run-fold.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { SessionError } from "../../src/session/errors.ts";
import type { Message } from "../../src/session/message.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { randomOf } from "../../src/testing/store/random-appends.ts";
import { callOf, calling, modelOf, saying, toolOf } from "../sample-run.ts";

const SESSION = "s";
const STEPS = 40;
const ROUNDS = 3;
const STILL_MS_MAX = 10_000;
/** The allowed outcomes of an operation after concurrent ones. */
const EXPECTED = new Set([
  "SESSION_BUSY",
  "CONFLICT",
  "RUN_ENDED",
  "ABORTED",
  "QUESTION_NOT_FOUND",
  "LEASE_LOST",
  "UNKNOWN_ENTRY",
  "CAPACITY",
]);

/** The history of one interleaving, for the checks. */
export interface Interleaving {
  readonly entries: readonly Entry[];
  /** `answer tool`, once for each time that something was really done. */
  readonly effects: readonly string[];
  /** Requests to the model in which a call is not followed by its results. */
  readonly torn: readonly string[];
  /** Whether someone moved the leaf, so that a run may have stayed on another branch. */
  readonly moved: boolean;
  /** The errors of operations that are not allowed for any of them. */
  readonly unexpected: readonly string[];
  /** The events that each claim of a run emitted in its process. */
  readonly claims: readonly ObservedClaim[];
}

/** The recorded events that listeners of one claim got, with their positions in the log, and the state that it ended with. */
export interface ObservedClaim {
  readonly runId: string;
  readonly events: { readonly seq: number; readonly event: RunEvent }[];
  /** The state of the run in its process, and the position up to which that was folded. */
  readonly last: () => { readonly state: RunState; readonly position: number };
}

/** Lets a run, other writers, moved leaves, stops, answers and abandoned runs come in an order that the seed decides. */
export async function interleave(
  store: SessionStore,
  { seed, moves }: { readonly seed: number; readonly moves: boolean },
): Promise<Interleaving> {
  const world = new World(store, seed, moves);
  return world.play();
}

class World {
  readonly #store: SessionStore;
  readonly #manager: SessionManager;
  readonly #random: () => number;
  readonly #moves: boolean;
  readonly #agent: Agent;
  readonly #effects: string[] = [];
  readonly #torn: string[] = [];
  readonly #unexpected: string[] = [];
  readonly #handles = new Set<SessionRun>();
  readonly #claims: ObservedClaim[] = [];
  #made = 0;
  #moved = false;

  constructor(store: SessionStore, seed: number, moves: boolean) {
    this.#store = store;
    this.#manager = new SessionManager({ store });
    this.#random = randomOf(seed);
    this.#moves = moves;
    this.#agent = this.#makeAgent();
  }

  async play(): Promise<Interleaving> {
    await this.#manager.create({ userId: "someone", id: SESSION });
    const acts = [
      ...many(3, () => this.#ask()),
      ...many(4, () => this.#goOn()),
      ...many(3, () => this.#answer()),
      ...many(2, () => this.#manager.addTurn(SESSION, { role: "user", content: `said ${this.#made++}` })),
      () => this.#store.append(SESSION, [{ type: "variables", set: { n: this.#made++ }, unset: [] }]),
      () => this.#manager.steer(SESSION, `steered ${this.#made++}`),
      () => this.#manager.cancel(SESSION),
      ...many(2, () => this.#abandon()),
      ...(this.#moves ? [() => this.#moveLeaf()] : []),
    ];
    const acted: Promise<void>[] = [];
    for (let step = 0; step < STEPS; step++) {
      const act = acts[Math.floor(this.#random() * acts.length)] as () => Promise<unknown>;
      // Some acts come while others are under way.
      const acting = this.#try(act);
      acted.push(acting);
      if (this.#random() < 0.5) await acting;
      await this.#pause();
    }
    // A late request is part of the open work.
    await Promise.all(acted);
    await this.#settle();
    const entries: Entry[] = [];
    for await (const entry of this.#store.read(SESSION)) entries.push(entry);
    return {
      entries,
      effects: this.#effects,
      torn: this.#torn,
      moved: this.#moved,
      unexpected: this.#unexpected,
      claims: this.#claims,
    };
  }

  /** Lets the work in progress take a few steps. */
  async #pause(): Promise<void> {
    for (let turns = Math.floor(this.#random() * 6); turns > 0; turns--)
      await new Promise((done) => setImmediate(done));
  }

  async #try(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof SessionError && EXPECTED.has(error.code))) this.#unexpected.push(String(error));
    }
  }

  async #ask(): Promise<void> {
    const runId = `r${this.#made++}`;
    await this.#manager.request(SESSION, { agent: "worker", input: `do ${runId}`, runId, ifBusy: "enqueue" });
  }

  async #goOn(): Promise<void> {
    const park = this.#random() < 0.5 ? { park: { afterMs: 0 } } : {};
    const found = await this.#manager.recover(SESSION, { worker: this.#agent }, park);
    if (found === null) return;
    const { run } = found;
    this.#handles.add(run);
    const { log } = run as unknown as LoopRun;
    const events: ObservedClaim["events"] = [];
    this.#claims.push({ runId: run.runId, events, last: () => ({ state: log.state, position: log.position }) });
    run.listen((event, seq, origin) => {
      if (origin === "recorded") events.push({ seq, event });
    });
    const ended = (): void => void this.#handles.delete(run);
    void run.synchronize().then(ended, ended);
  }

  /** Says yes or no to a random question, whether or not it has an answer. */
  async #answer(): Promise<void> {
    const asked: string[] = [];
    for await (const entry of this.#store.read(SESSION)) {
      if (entry.type === "approval" && entry.decision === undefined) asked.push(entry.id);
    }
    const question = asked[asked.length - 1 - Math.floor(this.#random() * Math.min(2, asked.length))];
    if (question === undefined) return;
    if (this.#random() < 0.7) await this.#manager.approve(SESSION, question);
    else await this.#manager.deny(SESSION, question, { reason: "no" });
  }

  /** Abandons the run like a process that dies. */
  async #abandon(): Promise<void> {
    const [run] = this.#handles;
    if (run !== undefined) await drainRuns({ timeoutMs: 0, ids: [run.id] });
  }

  async #moveLeaf(): Promise<void> {
    const nodes: string[] = [];
    for await (const entry of this.#store.read(SESSION)) if (entry.type === "message") nodes.push(entry.id);
    const targetId = nodes[Math.floor(this.#random() * nodes.length)];
    if (targetId === undefined) return;
    this.#moved = true;
    await this.#store.append(SESSION, [{ type: "leaf", targetId }]);
  }

  /** Finishes all open work; a state without progress is a failure. */
  async #settle(): Promise<void> {
    let [version, sinceMs] = [-1, performance.now()];
    for (;;) {
      const head = await this.#store.head(SESSION);
      if (head?.openRuns.length === 0 && this.#handles.size === 0) return;
      if (head?.version !== version) [version, sinceMs] = [head?.version ?? 0, performance.now()];
      if (performance.now() - sinceMs > STILL_MS_MAX) break;
      await this.#try(() => this.#answerAll());
      await this.#try(() => this.#goOn());
      await new Promise((done) => setTimeout(done, 1));
    }
    const open = JSON.stringify((await this.#store.head(SESSION))?.openRuns);
    const handles = [...this.#handles].map(({ runId, status, pendingApprovals }) => ({
      runId,
      status,
      pendingApprovals,
    }));
    const lease = await this.#store.leaseOf(SESSION);
    this.#unexpected.push(`Nothing happens any more: ${open}, here ${JSON.stringify(handles)}, lease ${lease?.runId}.`);
  }

  async #answerAll(): Promise<void> {
    const asked = new Set<string>();
    for await (const entry of this.#store.read(SESSION)) {
      if (entry.type === "approval" && entry.decision === undefined) asked.add(entry.id);
      else if (entry.type === "approval" && entry.question !== undefined) asked.delete(entry.question);
    }
    for (const question of asked) await this.#try(() => this.#manager.approve(SESSION, question));
  }

  #makeAgent(): Agent {
    const act = (name: string) =>
      toolOf(name, async (args) => {
        const { answer } = args as { readonly answer: number };
        this.#effects.push(`${answer} ${name}`);
        await new Promise((done) => setImmediate(done));
        return "ok";
      });
    return createAgent({
      name: "worker",
      prompt: "",
      builtInTools: false,
      tools: [
        { ...act("look"), idempotent: true },
        act("note"),
        { ...act("pay"), exclusive: true, needsApproval: () => true },
      ],
      model: modelOf(async ({ messages }) => {
        const problem = tornIn(messages);
        if (problem !== null) this.#torn.push(problem);
        await new Promise((done) => setImmediate(done));
        const since = messages.findLastIndex(
          ({ role, content }) => role === "user" && String(content).startsWith("do "),
        );
        const round = messages.slice(Math.max(0, since)).filter(({ role }) => role === "assistant").length;
        if (round >= ROUNDS) return saying("done");
        // Call ids repeat in every answer, and calls are distinguished by their arguments.
        const answer = this.#made++;
        return calling(...["look", "note", "pay"].map((name) => callOf(name, name, { answer })));
      }),
    });
  }
}

function many<T>(count: number, item: T): T[] {
  return Array.from({ length: count }, () => item);
}

/** The first call in a request that is not followed directly by all results of its answer; null where none is. */
function tornIn(messages: readonly Message[]): string | null {
  for (const [index, message] of messages.entries()) {
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    const answered = messages.slice(index + 1, index + 1 + calls.length);
    const ids = answered.map((each) => (each.role === "tool" ? each.toolCallId : each.role));
    const missing = calls.find(({ id }) => !ids.includes(id));
    if (missing !== undefined) return `call ${missing.id} is followed by ${ids.join(", ") || "nothing"}`;
  }
  return null;
}
