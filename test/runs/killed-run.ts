import { setTimeout as wait } from "node:timers/promises";
import { type Agent, createAgent } from "../../src/agent/agent.ts";
import type { ModelReply } from "../../src/agent/model/model.ts";
import type { LoopRun } from "../../src/agent/loop-run.ts";
import { pollFollowers } from "../../src/agent/persist/log-follower.ts";
import { readResumeState } from "../../src/agent/persist/read-resume-state.ts";
import { GroupSession } from "../../src/group/group-session.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import { asksOf } from "../../src/session/log/open-runs.ts";
import { isRecorded } from "../../src/session/log/run-event.ts";
import type { RunState } from "../../src/session/log/run-fold.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { randomOf } from "../../src/testing/store/random-appends.ts";
import { readTranscript } from "../../src/tree/read-session.ts";
import { callOf, calling, modelOf, saying, toolOf } from "../sample-run.ts";
import { type Fate, type MortalStore, mortalStore } from "./mortal-store.ts";

const RUN = "r";
const TOOLS = ["look", "note", "send", "pay", "delegate"] as const;
const PROCESSES_MAX = 200;
/** The call of the second answer that needs approval is denied. */
const DENIED_CALL = "1-pay";

/** The script of a run: the same for every seed, even if its processes die. */
export interface Scenario {
  /** The tools that each answer but the last calls. */
  readonly rounds: readonly (readonly (typeof TOOLS)[number][])[];
  readonly isGroup: boolean;
  /** Whether the run parks when it asks, or waits for the answer. A group waits. */
  readonly parks: boolean;
  /**
   * How structured output is requested: by a field of the request or by a tool; null for a run that ends with a text.
   */
  readonly output: "field" | "tool" | null;
  /** Whether the context gets too long on the way. */
  readonly compacts: boolean;
}

/** The parameters of a scenario for a seed. */
export function scenarioOf(seed: number): Scenario {
  const random = randomOf(seed * 7919);
  const isGroup = seed % 3 === 0;
  const compacts = random() < 0.5;
  const rounds = Array.from({ length: 2 + Math.floor(random() * 2) }, () => {
    const isCalled = (tool: string): boolean => random() < (compacts && tool === "look" ? 1 : 0.5);
    const calls = TOOLS.filter((tool) => tool !== "send" && isCalled(tool));
    // Two calls that must not run twice start together.
    const all = TOOLS.filter((tool) => calls.includes(tool === "send" ? "note" : tool));
    return all.length === 0 ? ["look" as const] : all;
  });
  const output = random() < 0.6 ? (random() < 0.5 ? ("field" as const) : ("tool" as const)) : null;
  return { rounds, isGroup, parks: random() < 0.5, output: isGroup ? null : output, compacts };
}

/** An event that a listener of a process got, with the position of the log. */
export interface HeardEvent {
  readonly seq: number;
  readonly event: { readonly type: string; readonly runId: string };
}

/** The result of a scenario. */
export interface PlayedRun {
  readonly sessionId: string;
  readonly runId: string;
  /** The recorded events that the listeners of each process got. */
  readonly heard: readonly (readonly HeardEvent[])[];
  /** Where recovery would have begun with another state than that of the process at work. */
  readonly differences: readonly { readonly position: number; readonly live: RunState; readonly read: RunState }[];
  /** How many positions were compared. */
  readonly compared: number;
  /** How many appends its processes began. */
  readonly appends: number;
  /** Calls that were really done twice and must not be. */
  readonly doneTwice: readonly string[];
  /** How many processes froze and continued after others had taken over, and how many of them could still append. */
  readonly thawed: number;
  readonly appendedLate: number;
  readonly entries: readonly Entry[];
}

/**
 * Plays a scenario to its end in a new session. `fateOf` decides what happens with each append of the processes that
 * hold the run, from 1.
 */
export function playRun(
  store: SessionStore,
  sessionId: string,
  scenario: Scenario,
  fateOf: (append: number) => Fate,
): Promise<PlayedRun> {
  return new Play(store, sessionId, scenario, fateOf).play();
}

class Play {
  readonly #store: SessionStore;
  readonly #sessionId: string;
  readonly #scenario: Scenario;
  readonly #fateOf: (append: number) => Fate;
  /** Users, who send input to the run and answer its questions from a process that does not die. */
  readonly #people: SessionManager;
  readonly #done: string[] = [];
  readonly #heard: HeardEvent[][] = [];
  readonly #differences: { position: number; live: RunState; read: RunState }[] = [];
  #appends = 0;
  #compared = 0;
  #hasSpoken = false;
  #run: LoopRun | null = null;
  /** Processes that froze, with the end of what they do. */
  readonly #frozen: { readonly process: MortalStore; readonly over: Promise<unknown> }[] = [];

  constructor(store: SessionStore, sessionId: string, scenario: Scenario, fateOf: (append: number) => Fate) {
    this.#store = store;
    this.#sessionId = sessionId;
    this.#scenario = scenario;
    this.#fateOf = fateOf;
    this.#people = new SessionManager({ store });
  }

  async play(): Promise<PlayedRun> {
    const who = this.#scenario.isGroup ? { group: "panel" } : { agent: "worker" };
    await this.#people.create({ userId: "ann", id: this.#sessionId });
    await this.#people.request(this.#sessionId, { ...who, input: "Do it.", runId: RUN });
    while ((await this.#store.head(this.#sessionId))?.openRuns.length !== 0) {
      if (this.#heard.length === PROCESSES_MAX) throw new Error("The run does not come to its end.");
      await this.#answer("all");
      await this.#live();
    }
    await Promise.all(this.#frozen.map(({ process, over }) => [process.thaw(), over][1]));
    const entries: Entry[] = [];
    for await (const entry of this.#store.read(this.#sessionId)) entries.push(entry);
    return {
      ...{ sessionId: this.#sessionId, runId: RUN, heard: this.#heard, appends: this.#appends, entries },
      ...{ differences: this.#differences, compared: this.#compared, thawed: this.#frozen.length },
      appendedLate: this.#frozen.filter(({ process }) => process.appendedLate).length,
      doneTwice: this.#done.filter((line, index) => this.#done.indexOf(line) !== index),
    };
  }

  /** One process, until it dies or freezes, or the run ends or parks. */
  async #live(): Promise<void> {
    let appends = 0;
    const process = mortalStore(this.#store, {
      fate: () => {
        appends += 1;
        // Earlier processes that froze wake up while this one works.
        if (appends === 2) for (const earlier of this.#frozen) earlier.process.thaw();
        return this.#fateOf(++this.#appends);
      },
      boundary: async () => {
        await this.#speak();
        await this.#compare();
      },
    });
    const manager = new SessionManager({ store: process.store });
    const heard: HeardEvent[] = [];
    this.#heard.push(heard);
    // A run inside of a tool cannot park; what a run that parks asks itself is answered once it has.
    const asked = this.#scenario.parks && !this.#scenario.isGroup ? "inner" : "all";
    let isOver = false;
    const ended = (this.#scenario.isGroup ? this.#runGroup : this.#runAgent).call(this, process, manager, heard);
    const over = ended
      .finally(() => {
        isOver = true;
      })
      .catch((error: unknown) => {
        if (!process.death.aborted && !isFrozen) throw error;
      });
    let isFrozen = false;
    const froze = process.frozen.then(() => {
      isFrozen = true;
      this.#frozen.push({ process, over });
    });
    over.catch(() => {});
    while (!isOver && !isFrozen) {
      // The process polls immediately; otherwise it would start to listen after a while.
      if (await this.#answer(asked)) await pollFollowers(process.store, this.#sessionId);
      await Promise.race([wait(1), over.catch(() => {}), froze]);
    }
    this.#run = null;
    if (!isFrozen) await over;
  }

  async #runAgent(process: MortalStore, manager: SessionManager, heard: HeardEvent[]): Promise<void> {
    const { parks, output } = this.#scenario;
    const agent = this.#agentOf("worker", process);
    const observed: Agent = {
      ...agent,
      run: (input, options) => {
        const run = agent.run(input, options);
        run.listen((event, seq, origin) => {
          if (origin === "recorded" && !process.death.aborted) heard.push({ seq, event });
        });
        this.#run = run as unknown as LoopRun;
        return run;
      },
    };
    const found = await manager.recover(
      this.#sessionId,
      { worker: observed },
      {
        park: parks ? { afterMs: 0 } : false,
        signal: process.death,
        ...(output === null
          ? {}
          : { output: { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } }),
      },
    );
    await found?.run.synchronize();
  }

  async #runGroup(process: MortalStore, manager: SessionManager, heard: HeardEvent[]): Promise<void> {
    const group = new GroupSession({ manager });
    for (const name of ["ann", "ben"]) group.addAgent(this.#agentOf(name, process));
    const run = group.stream(this.#sessionId, null, { runId: RUN, maxRounds: 1, park: false, signal: process.death });
    run.listen((event, seq, origin) => {
      if (origin === "recorded" && isRecorded(event) && !process.death.aborted) heard.push({ seq, event });
    });
    await run;
  }

  /** Compares the state of the run in its process with the state from which another process would recover it now. */
  async #compare(): Promise<void> {
    const log = this.#run?.log;
    const head = await this.#store.head(this.#sessionId);
    if (log === undefined || head === null || log.position !== head.version - 1 || log.state.open === null) return;
    const live = log.state;
    const passed: Entry[] = [];
    const { transcript, entries } = await readTranscript(this.#store, head, head.leafId, (each) => passed.push(each));
    // Whether recovery has the entries already, or reads them again, makes no difference.
    const context = { entries, passed: head.version % 2 === 0 ? passed : [] };
    const { run: read } = await readResumeState(this.#store, head, transcript, context);
    // Others may have appended meanwhile.
    if ((await this.#store.head(this.#sessionId))?.version !== head.version || log.state !== live) return;
    this.#compared += 1;
    const [one, other] = [JSON.stringify(live), JSON.stringify(read)];
    if (one !== other) this.#differences.push({ position: log.position, live, read });
  }

  /** Answers the questions of the run, or only those of runs inside its tools; false if there is none. */
  async #answer(which: "all" | "inner"): Promise<boolean> {
    const [open] = (await this.#store.head(this.#sessionId))?.openRuns ?? [];
    if (open === undefined) return false;
    const questions = which === "all" ? asksOf(open) : (open.innerQuestions ?? []);
    // A question that is no longer open accepts no answer.
    for (const question of questions) {
      const asked = await this.#store.getEntry(this.#sessionId, question);
      const isDenied = asked?.type === "approval" && asked.callId === DENIED_CALL;
      const answering = isDenied
        ? this.#people.deny(this.#sessionId, question, { reason: "Too much." })
        : this.#people.approve(this.#sessionId, question);
      await answering.catch(() => {});
    }
    return questions.length > 0;
  }

  /** How many answers the log has, of an agent. */
  async #answersOf(name: string): Promise<number> {
    let answers = 0;
    for await (const entry of this.#store.read(this.#sessionId))
      if (entry.type === "message" && entry.message.role === "assistant" && entry.message.agent === name) answers += 1;
    return answers;
  }

  #agentOf(name: string, process: MortalStore): Agent {
    const { rounds, output, compacts } = this.#scenario;
    const act = (tool: string, execute: (round: number) => unknown) =>
      toolOf(tool, async (args) => {
        process.death.throwIfAborted();
        const { round } = args as { readonly round: number };
        if (tool !== "look") this.#done.push(`${name} ${round} ${tool}`);
        return execute(round);
      });
    const model = modelOf(
      async ({ tools = [] }) => {
        // Tokens that an answer reports count for the size of the context, which would then never be full.
        const spent = compacts ? { cost: 1 } : { usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10 }, cost: 1 };
        if (tools.length === 0) return saying("What was said.", spent);
        const round = await this.#answersOf(name);
        const calls = rounds[round]?.map((tool) => callOf(`${round}-${tool}`, tool, { round })) ?? [];
        if (calls.length > 0) return { ...calling(...calls), ...spent };
        if (output === "tool") return { ...calling(callOf("last", "give_answer", { sum: round })), ...spent };
        return saying(output === null ? `${name} is done.` : JSON.stringify({ sum: round }), spent);
      },
      { ...(compacts ? { contextWindow: 3_000 } : {}), ...(output === "tool" ? {} : { takesOutput: () => true }) },
    );
    return createAgent({
      name,
      prompt: "Work.",
      builtInTools: false,
      model,
      tools: [
        { ...act("look", () => "word ".repeat(compacts ? 1_200 : 2)), idempotent: true },
        act("note", () => "noted"),
        act("send", () => "sent"),
        { ...act("pay", () => "paid"), needsApproval: () => true },
        { ...act("delegate", () => this.#delegate(process)), effects: "reads" },
      ],
    });
  }

  /** Someone says something to the run once it has answered, to be delivered before its next answer and before its end. */
  async #speak(): Promise<void> {
    if (this.#hasSpoken || this.#scenario.isGroup || (await this.#answersOf("worker")) === 0) return;
    this.#hasSpoken = true;
    await this.#people.steer(this.#sessionId, "Hurry.");
    await this.#people.followUp(this.#sessionId, "And then?");
  }

  /** A run inside of a tool, with a call that needs approval. */
  async #delegate(process: MortalStore): Promise<string | null> {
    const replies: ModelReply[] = [calling(callOf("inner", "pay")), saying("Delegated.")];
    const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
    const model = modelOf(async () => {
      process.death.throwIfAborted();
      return replies.shift() ?? saying("Again.");
    });
    const inner = createAgent({ name: "inner", prompt: "", builtInTools: false, model, tools: [pay] });
    return (await inner.run("Pay.", { park: false, signal: process.death })).text();
  }
}
