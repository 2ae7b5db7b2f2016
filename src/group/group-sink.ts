import { UNLIMITED } from "../agent/persist/log-sink.ts";
import { isSaidTo, type LogEar } from "../agent/persist/run-ears.ts";
import type { HeardFact, RunSink } from "../agent/persist/run-sink.ts";
import type { SessionRoom } from "../tree/tree-backing.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import type { AssistantMessage, Message } from "../session/message.ts";
import { answerMessage, passDraft, workMessage } from "./group-drafts.ts";
import type { GroupSeat } from "./group-agent.ts";
import type { GroupLog } from "./group-log.ts";
import { isEmpty } from "./agent-view.ts";

/** What the run of an agent of a group is kept with. */
export interface GroupSinkInit {
  readonly sessionId: string;
  /** The group's own run. */
  readonly runId: string;
  readonly log: GroupLog;
  readonly seat: GroupSeat;
  /** Whether anyone has subscribed to the events of the group. */
  readonly isFollowed: () => boolean;
}

/**
 * Keeps the run of a loop agent in the group's session, row by row. Its answer is a turn for the group; what led to it,
 * calls and what tools answered, only the agent itself gets to see again.
 */
export class GroupSink implements RunSink {
  readonly sessionId: string;
  readonly isFollowed: () => boolean;
  readonly #log: GroupLog;
  readonly #seat: GroupSeat;
  readonly #runId: string;
  #answer: Extract<Entry, { type: "message" }> | null = null;
  #passed = false;
  #ear: LogEar | null = null;
  #stopListening = (): void => {};

  constructor({ sessionId, runId, log, seat, isFollowed }: GroupSinkInit) {
    this.sessionId = sessionId;
    this.#runId = runId;
    this.#log = log;
    this.#seat = seat;
    this.isFollowed = isFollowed;
  }

  /** The agent's answer, once it has given one. */
  get answer(): Extract<Entry, { type: "message" }> | null {
    return this.#answer;
  }

  /** Whether the agent had nothing to say. */
  get passed(): boolean {
    return this.#passed;
  }

  get room(): SessionRoom | null {
    return this.#log.room;
  }

  async append(drafts: readonly EntryDraft[]): Promise<{ readonly entries: readonly (Entry | null)[] }> {
    const kept = drafts.map((draft) => this.#keptOf(draft));
    if (kept.every((some) => some.length === 0)) return { entries: kept.map(() => null) };
    const entries = [...(await this.#log.append(kept.flat(), UNLIMITED))];
    for (const entry of entries) {
      if (entry.type === "custom") this.#passed = true;
      if (entry.type === "message" && isAnswer(entry.message)) this.#answer = entry;
    }
    return { entries: kept.map((some) => (some.length === 0 ? null : (entries.shift() ?? null))) };
  }

  listen(tell: (fact: HeardFact) => void): void {
    this.#ear = this.#log.earFor((entry) => {
      if (isSaidTo(this.#runId, entry) && entry.type === "approval") tell(entry);
    });
    this.#stopListening = this.#ear.listen();
  }

  async look(): Promise<void> {
    await this.#ear?.look();
  }

  async end(): Promise<boolean> {
    this.#stopListening();
    return true;
  }

  async abandon(): Promise<void> {
    this.#stopListening();
  }

  origin(): null {
    return null;
  }

  #keptOf(draft: EntryDraft): readonly EntryDraft[] {
    // A summary of what one agent sees must not replace what the others see.
    if (draft.type === "compaction") return [];
    // Whoever answers finds the question by the run that is open, which is the group's.
    if (draft.type === "approval") return [{ ...draft, runId: this.#runId }];
    if (draft.type !== "message") return [draft];
    const { message } = draft;
    const { name, visibility } = this.#seat;
    if (!isAnswer(message)) return [{ ...draft, message: workMessage(name, message) }];
    if (isEmpty(message)) return [passDraft(name, message)];
    return [{ ...draft, message: answerMessage(name, visibility, message) }];
  }
}

/** Whether a message ends a run: an answer without calls, or one that was cut, whose calls are not run. */
function isAnswer(message: Message): message is AssistantMessage {
  if (message.role !== "assistant" || message.stopReason === "aborted") return false;
  const cut = message.stopReason === "length" || message.stopReason === "content_filter";
  return cut || (message.toolCalls ?? []).length === 0;
}
