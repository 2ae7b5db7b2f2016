import { setTimeout as delay } from "node:timers/promises";
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
  SessionBusyError,
  SessionError,
  type SessionManager,
  type SessionRun,
  type SessionStore,
  type SessionTree,
  type Tool,
  type AskPolicy,
} from "../../index.ts";
import { workspaceTools } from "../../tools/workspace-tools.ts";
import { restrictedSpec } from "../../sandboxes/stricter-spec.ts";
import { forgetConsent } from "../../agent/persist/resume-state.ts";
import { hasBegun } from "../../session/log/run-fold.ts";
import type { OpenRun } from "../../session/log/open-runs.ts";
import { type ChatOutput, notice } from "./chat-output.ts";

/**
 * How calls that need approval are answered: `asked` asks the person at the terminal; `refused` denies them, even if the log has approvals;
 * `parked` parks the run until they are answered.
 */
export type ChatQuestions = "asked" | "refused" | "parked";

/** The answer to a question; `"nobody"` if no person can be asked, `"stopped"` if the turn was aborted instead. */
export type Word = "yes" | "no" | "nobody" | "stopped";

/** The name of the chat's agent in logs; the agents of `skein acp` and `skein recover` have the same name. */
export const CHAT_AGENT = "skein";

/** Agents beside that of the chat whose runs may be recovered. */
export interface OtherAgents {
  readonly agents: ReadonlyMap<string, Agent>;
  /** The agent for a run whose log names none. */
  readonly unnamed: string | null;
}

/** The settings of the agent that answers a turn. */
export interface Answerer {
  /** @throws {SessionError} if the session's model cannot be created here. */
  readonly model: Model;
  readonly prompt: string;
  /** Which calls need approval. */
  readonly ask: AskPolicy;
  /** What happens to calls that need approval. */
  readonly questions: ChatQuestions;
  /** The directory that the tools act in. */
  readonly workspace: string;
  /** Tools beside the workspace tools. */
  readonly tools: readonly Tool[];
}

/** How many entries are read backwards to find the questions of a run. */
const LOOKED_BACK_MAX = 1000;

/** How often a lease is read while waiting for its end. */
const LEASE_POLL_MS = 250;

interface Started {
  /** The session that holds the sandbox of the run's tools; its sandbox is closed when the run ends. */
  readonly source: Session;
  readonly run: SessionRun;
}

/** Runs the turns of a chat, one at a time; each can be aborted. */
export class ChatTurns {
  #work: AbortController | null = null;
  #run: SessionRun | null = null;

  /** The calls of the current turn that wait for approval. */
  get pendingApprovals(): readonly Approval[] {
    return this.#run?.pendingApprovals ?? [];
  }

  /** Sends a user message and yields the events of the answer. */
  async *answer(tree: SessionTree, content: Content, by: Answerer): AsyncGenerator<ChatOutput> {
    const { prompt } = by;
    yield* this.#follow(tree, async (signal) => {
      const source = inWorkspace(by, tree)(Session.fromUserMessage(content));
      const agent = createAgent({ name: CHAT_AGENT, prompt, ...optionsOf(by) });
      return { source, run: agent.run(source, { persist: tree, signal }) };
    });
  }

  /**
   * Recovers the run that is due in a session, with the agent that its log names; returns false if none is due.
   * `models` creates the model that the run's request names.
   */
  async *recover(
    manager: SessionManager,
    tree: SessionTree,
    by: Answerer,
    { models, agents, unnamed }: OtherAgents & { readonly models: (name: string) => Model },
  ): AsyncGenerator<ChatOutput, boolean> {
    return yield* this.#follow(tree, async (signal) => {
      const agentOf = (name: string | null, run: OpenRun): Agent | null => {
        const wanted = name ?? unnamed ?? (hasBegun(run) ? null : CHAT_AGENT);
        if (wanted !== CHAT_AGENT) return agents.get(wanted ?? "") ?? null;
        return createAgent({ name: CHAT_AGENT, prompt: by.prompt, ...optionsOf(by) });
      };
      let source: Session | null = null;
      const elsewhere = await isAskedElsewhere(tree, by.workspace);
      const place = (input: Session): Session => {
        // An approval holds for one directory only: in another one, the call is asked about again.
        if (elsewhere) forgetConsent(input.transcript);
        source = placeOf(by, tree)(input);
        return source;
      };
      const park = by.questions === "parked" ? { afterMs: 0 } : (false as const);
      const found = await manager.recover(tree.id, agentOf, { place, models, signal, park });
      return found === null || source === null ? null : { source, run: found.run };
    });
  }

  /** Continues from an entry: runs calls that have no result, or answers a message that has no answer. */
  async *continueFrom(tree: SessionTree, by: Answerer, from: string): AsyncGenerator<ChatOutput> {
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

  /** Makes work abortable by `interrupt`. Nested work shares the controller of the outer work. */
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

  /** Aborts the current work; returns whether there was any. */
  interrupt(): boolean {
    this.#work?.abort(new SessionError("ABORTED", "Stopped."));
    return this.#work !== null;
  }

  /** Approves a call, or denies it with a reason; a null reason approves. */
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
      yield* waitForLease(tree.store, tree.id, signal);
      const started = await start(signal);
      if (started === null) return false;
      const { source, run } = started;
      turns.#run = run;
      try {
        for await (const event of run) yield { type: "run-event", event };
      } finally {
        turns.#run = null;
        // The caller has stopped reading, so nothing could abort the run any more: abort it here.
        if (run.pending) run.abort();
        await run.synchronize().then(
          (session) => session.closeSandbox(),
          // The failure was already yielded as an event.
          () => {},
        );
        await source.closeSandbox();
      }
      return true;
    });
  }
}

/** True if the calls without a result were asked about as calls in another directory. */
async function isAskedElsewhere({ store, id }: SessionTree, workspace: string): Promise<boolean> {
  const calls = new Set<string>();
  for await (const entry of store.read(id, { reverse: true, limit: LOOKED_BACK_MAX })) {
    if (entry.type === "message" && entry.message.role === "assistant") return false;
    // A call may be asked about twice; the last question counts.
    if (entry.type !== "approval" || entry.asked === undefined || calls.has(entry.callId)) continue;
    calls.add(entry.callId);
    const { reach } = entry.asked as { readonly reach?: Approval["reach"] };
    if (reach != null && reach.directory !== workspace) return true;
  }
  return false;
}

/** Places the session's tools in the workspace. If no person can be asked, recorded approvals are ignored as well. */
function placeOf(by: Answerer, tree: SessionTree): (session: Session) => Session {
  return (session) => {
    if (by.questions === "refused") forgetConsent(session.transcript);
    return inWorkspace(by, tree)(session);
  };
}

/** Places a session in the workspace. If its log records a stricter sandbox, those restrictions are kept. */
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

/**
 * Waits until the lease of a killed run has ended.
 *
 * @throws {SessionBusyError} if the run is alive: it has renewed its lease, or another run has the lease.
 */
async function* waitForLease(store: SessionStore, sessionId: string, signal: AbortSignal): AsyncGenerator<ChatOutput> {
  const held = await store.leaseOf(sessionId);
  if (held === null) return;
  const seconds = Math.max(1, Math.ceil((Date.parse(held.expiresAt) - Date.now()) / 1000));
  yield notice(
    `Another run has this session. Waiting: if its program was killed, the session is free in ${seconds} seconds.`,
  );
  for (;;) {
    await delay(LEASE_POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
    const lease = await store.leaseOf(sessionId);
    if (lease === null) return;
    if (lease.token !== held.token || lease.expiresAt !== held.expiresAt) {
      throw new SessionBusyError(sessionId, `run ${lease.runId}`);
    }
  }
}
