import {
  type Approval,
  createAgent,
  type LoopOptions,
  type Model,
  resumeSession,
  runSessionLoop,
  Session,
  SessionError,
  type SessionRun,
  type SessionTree,
  type Unasked,
  workspaceTools,
} from "../../index.ts";
import { forgetConsent } from "../../agent/resume-state.ts";
import type { ChatOutput } from "./chat-output.ts";
import { untilFree } from "./until-free.ts";

/** What answers a turn. */
export interface Answerer {
  readonly model: Model;
  readonly prompt: string;
  /** Which calls run without a question. */
  readonly unasked: Unasked;
  /** Whether someone is there to be asked. */
  readonly attended: boolean;
  /** The directory that the tools act in. */
  readonly workspace: string;
}

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
  async *answer(tree: SessionTree, text: string, by: Answerer): AsyncGenerator<ChatOutput> {
    const { prompt, workspace } = by;
    yield* this.#follow(tree, async (signal) => {
      const source = Session.fromUserMessage(text).to("local", workspace);
      const agent = createAgent({ prompt, ...optionsOf(by) });
      return { source, run: agent.run(source, { persist: tree, signal }) };
    });
  }

  /**
   * Goes on where the session stands, or from another entry: with calls that have no result, or with a question that has
   * no answer.
   */
  async *goOn(tree: SessionTree, by: Answerer, from?: string): AsyncGenerator<ChatOutput> {
    const { prompt, workspace, attended } = by;
    yield* this.#follow(tree, async (signal) => {
      if (from !== undefined) await tree.branch(from);
      const { store, id: sessionId } = tree;
      const { user, agent } = await resumeSession({ store, sessionId }, { agentPrompt: prompt });
      if (!attended) forgetConsent(user.transcript);
      const source = user.to("local", workspace);
      return { source, run: runSessionLoop(source, agent, { ...optionsOf(by), persist: tree, signal }) };
    });
  }

  /** Does something that `interrupt` can stop. */
  async *stoppable(work: (signal: AbortSignal) => AsyncIterable<ChatOutput>): AsyncGenerator<ChatOutput> {
    const controller = new AbortController();
    this.#work = controller;
    try {
      yield* work(controller.signal);
    } finally {
      this.#work = null;
    }
  }

  /** Stops what is under way; whether there was anything. */
  interrupt(): boolean {
    this.#work?.abort(new SessionError("ABORTED", "Stopped."));
    return this.#work !== null;
  }

  /** Gives a person's word on a call that waits for it. */
  async decide(callId: string, decision: { readonly approved: boolean; readonly reason?: string }): Promise<void> {
    if (decision.approved) await this.#run?.approve(callId);
    else await this.#run?.deny(callId, decision.reason);
  }

  #follow(tree: SessionTree, start: (signal: AbortSignal) => Promise<Started>): AsyncGenerator<ChatOutput> {
    const turns = this;
    return this.stoppable(async function* (signal) {
      yield* untilFree(tree.store, tree.id, signal);
      const { source, run } = await start(signal);
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
    });
  }
}

function optionsOf({ model, unasked }: Answerer): LoopOptions & { readonly model: Model } {
  return { model, unasked, tools: workspaceTools, builtInTools: false };
}
