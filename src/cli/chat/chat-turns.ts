import {
  type Agent,
  type Approval,
  type Content,
  createAgent,
  type LoopOptions,
  type Model,
  resumeSession,
  runSessionLoop,
  Session,
  SessionError,
  type SessionManager,
  type SessionRun,
  type SessionTree,
  type Tool,
  type AskPolicy,
} from "../../index.ts";
import { workspaceTools } from "../../tools/workspace-tools.ts";
import { restrictedSpec } from "../../sandboxes/stricter-spec.ts";
import { forgetConsent } from "../../agent/persist/resume-state.ts";
import type { OpenRun } from "../../session/log/open-runs.ts";
import type { ChatOutput } from "./chat-output.ts";
import { untilFree } from "./until-free.ts";

/**
 * What becomes of calls that need a person's word: someone is there to be asked; or nobody is, and they are refused, whatever
 * is on record of them; or the run parks until they have an answer.
 */
export type ChatQuestions = "asked" | "refused" | "parked";

/** What a person says to a question; `"nobody"` when none is there, `"stopped"` when the turn is stopped instead. */
export type Word = "yes" | "no" | "nobody" | "stopped";

/** What the agent of chats is called in logs; those of the editor and of `skein recover` are the same one. */
export const CHAT_AGENT = "skein";

/** Agents that may go on with a run beside that of the chat. */
export interface OtherAgents {
  readonly agents: ReadonlyMap<string, Agent>;
  /** The one to go on with a run whose log names none. */
  readonly unnamed: string | null;
}

/** What answers a turn. */
export interface Answerer {
  /** @throws {SessionError} where the session's model cannot be had here. */
  readonly model: Model;
  readonly prompt: string;
  /** Which calls run without a question. */
  readonly ask: AskPolicy;
  /** What becomes of calls that need a person's word. */
  readonly questions: ChatQuestions;
  /** The directory that the tools act in. */
  readonly workspace: string;
  /** What it can call beside the workspace tools. */
  readonly tools: readonly Tool[];
}

/** How far back the questions of a run are looked for. */
const LOOKED_BACK_MAX = 1000;

interface Started {
  /** Where the run's tools act; let go of when the run is over. */
  readonly source: Session;
  readonly run: SessionRun;
}

/** The turns of a chat, one at a time, each of which can be stopped. */
export class ChatTurns {
  #work: AbortController | null = null;
  #run: SessionRun | null = null;

  /** The calls of the turn under way that wait for a person's word. */
  get pendingApprovals(): readonly Approval[] {
    return this.#run?.pendingApprovals ?? [];
  }

  /** Says something and follows the answer. */
  async *answer(tree: SessionTree, content: Content, by: Answerer): AsyncGenerator<ChatOutput> {
    const { prompt } = by;
    yield* this.#follow(tree, async (signal) => {
      const source = inWorkspace(by, tree)(Session.fromUserMessage(content));
      const agent = createAgent({ name: CHAT_AGENT, prompt, ...optionsOf(by) });
      return { source, run: agent.run(source, { persist: tree, signal }) };
    });
  }

  /**
   * Goes on with the run that is due in a session, if one is, with the agent that its log names; whether one was. `models`
   * makes what its request names.
   */
  async *recover(
    manager: SessionManager,
    tree: SessionTree,
    by: Answerer,
    { models, agents, unnamed }: OtherAgents & { readonly models: (name: string) => Model },
  ): AsyncGenerator<ChatOutput, boolean> {
    return yield* this.#follow(tree, async (signal) => {
      const agentOf = (name: string | null, { state }: OpenRun): Agent | null => {
        const wanted = name ?? unnamed ?? (state === "requested" ? CHAT_AGENT : null);
        if (wanted !== CHAT_AGENT) return agents.get(wanted ?? "") ?? null;
        return createAgent({ name: CHAT_AGENT, prompt: by.prompt, ...optionsOf(by) });
      };
      let source: Session | null = null;
      const elsewhere = await isAskedElsewhere(tree, by.workspace);
      const place = (input: Session): Session => {
        // A word that was given for one directory is none for another: whoever gave it is asked anew.
        if (elsewhere) forgetConsent(input.transcript);
        source = placeOf(by, tree)(input);
        return source;
      };
      const park = by.questions === "parked" ? { afterMs: 0 } : (false as const);
      const found = await manager.recover(tree.id, agentOf, { place, models, signal, park });
      return found === null || source === null ? null : { source, run: found.run };
    });
  }

  /** Goes on from an entry: with calls that have no result, or with a question that has no answer. */
  async *goOn(tree: SessionTree, by: Answerer, from: string): AsyncGenerator<ChatOutput> {
    const { prompt } = by;
    yield* this.#follow(tree, async (signal) => {
      await tree.branch(from);
      const { store, id: sessionId } = tree;
      const { user, agent } = await resumeSession({ store, sessionId }, { agentPrompt: prompt });
      const source = placeOf(by, tree)(user);
      return {
        source,
        run: runSessionLoop(source, agent, { ...optionsOf(by), agentName: CHAT_AGENT, persist: tree, signal }),
      };
    });
  }

  /** Does something that `interrupt` can stop; inside of other such work it is a part of that. */
  async *stoppable<T>(work: (signal: AbortSignal) => AsyncGenerator<ChatOutput, T>): AsyncGenerator<ChatOutput, T> {
    const around = this.#work;
    const controller = around ?? new AbortController();
    this.#work = controller;
    try {
      return yield* work(controller.signal);
    } finally {
      this.#work = around;
    }
  }

  /** Stops what is under way; whether there was anything. */
  interrupt(): boolean {
    this.#work?.abort(new SessionError("ABORTED", "Stopped."));
    return this.#work !== null;
  }

  /** Gives a person's word on a call that waits for it: why it is refused, or null where it may run. */
  async decide(question: string, reason: string | null): Promise<void> {
    if (reason === null) await this.#run?.approve(question);
    else await this.#run?.deny(question, reason);
  }

  #follow(
    tree: SessionTree,
    start: (signal: AbortSignal) => Promise<Started | null>,
  ): AsyncGenerator<ChatOutput, boolean> {
    const turns = this;
    return this.stoppable(async function* (signal) {
      yield* untilFree(tree.store, tree.id, signal);
      const started = await start(signal);
      if (started === null) return false;
      const { source, run } = started;
      turns.#run = run;
      try {
        for await (const event of run) yield { type: "run-event", event };
      } finally {
        turns.#run = null;
        // Nobody reads on: a run that nobody can stop must not go on.
        if (run.pending) run.abort();
        await run.synchronize().then(
          (session) => session.closeSandbox(),
          // A failure was told as an event.
          () => {},
        );
        await source.closeSandbox();
      }
      return true;
    });
  }
}

/** Whether the calls that a session has no result of were asked about as calls in another directory. */
async function isAskedElsewhere({ store, id }: SessionTree, workspace: string): Promise<boolean> {
  const calls = new Set<string>();
  for await (const entry of store.read(id, { reverse: true, limit: LOOKED_BACK_MAX })) {
    if (entry.type === "message" && entry.message.role === "assistant") return false;
    // Of a call that was asked about again, the last question counts.
    if (entry.type !== "approval" || entry.asked === undefined || calls.has(entry.callId)) continue;
    calls.add(entry.callId);
    const { reach } = entry.asked as { readonly reach?: Approval["reach"] };
    if (reach != null && reach.directory !== workspace) return true;
  }
  return false;
}

/** Lets the tools of a session act in the workspace; where nobody is there, no word on record lets a call run either. */
function placeOf(by: Answerer, tree: SessionTree): (session: Session) => Session {
  return (session) => {
    if (by.questions === "refused") forgetConsent(session.transcript);
    return inWorkspace(by, tree)(session);
  };
}

/** The same place for every session, but where its log recorded a stricter one, commands reach no more than there. */
function inWorkspace({ workspace }: Answerer, { header }: SessionTree): (session: Session) => Session {
  return (session) => {
    const recorded = session.sandboxPlacement ?? header.sandbox;
    return session.to("local", restrictedSpec({ workingDir: workspace }, recorded));
  };
}

function optionsOf({ model, ask, questions, tools }: Answerer): LoopOptions & { readonly model: Model } {
  const park = questions === "parked" ? { afterMs: 0 } : (false as const);
  return { model, ask, park, tools: [...workspaceTools, ...tools], builtInTools: false };
}
