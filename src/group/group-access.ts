import { isCutShort } from "../session/log/run-fold.ts";
import type { LogAccess, LogAppended } from "../agent/persist/log-access.ts";
import { isAddressedTo, type LogFollower, type RunMessage } from "../agent/persist/log-follower.ts";
import { uuidv7 } from "../internal/uuid.ts";
import type { SessionRoom } from "../tree/tree-backing.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { AssistantMessage, Message } from "../session/message.ts";
import type { Payer } from "../session/payer.ts";
import type { AppendOptions, SessionStore } from "../session/store.ts";
import { answerMessage, passDraft, workMessage } from "./group-drafts.ts";
import type { GroupSeat } from "./group-agent.ts";
import type { GroupLog } from "./group-log.ts";
import { type GroupItem, idsOf, isEmpty, rowsFor } from "./agent-view.ts";
import type { RowInit } from "../session/value/transcript.ts";

/** The parts of a `GroupAccess`. */
export interface GroupAccessInit {
  readonly log: GroupLog;
  readonly seat: GroupSeat;
  /** The messages that the agent may see now. */
  readonly visibleNow: () => readonly GroupItem[];
  /** Whether anyone has subscribed to the events of the group. */
  readonly isFollowed: () => boolean;
  readonly payer: Payer | null;
}

/**
 * The group's log as seen by the run of one of its agents. Rows are rewritten when they are appended: the agent's
 * answer becomes a turn of the group, and its calls and results are visible to the agent only. The agent's run gets its
 * entries back as it wrote them.
 */
export class GroupAccess implements LogAccess {
  readonly store: SessionStore;
  readonly sessionId: string;
  readonly shared = false;
  readonly parks = false;
  /** The group decides what its agents see. */
  readonly takesOthers = false;
  readonly header: LogAccess["header"];
  readonly guard = {};
  readonly lease = null;
  readonly isFollowed: () => boolean;
  readonly payer: Payer | null;
  readonly #log: GroupLog;
  readonly #seat: GroupSeat;
  #answer: Extract<Entry, { type: "message" }> | null = null;
  #passed = false;
  readonly #visibleNow: () => readonly GroupItem[];
  /**
   * The turns from before the run that the agent must not see, or that it sees. Entries that others append during the run are for the next
   * run.
   */
  readonly #hidden: ReadonlySet<string>;
  readonly #shown: ReadonlySet<string>;
  #edits: number;

  constructor({ log, seat, visibleNow, isFollowed, payer }: GroupAccessInit) {
    this.#log = log;
    this.#seat = seat;
    this.isFollowed = isFollowed;
    this.payer = payer;
    this.store = log.store;
    this.header = log.header;
    this.sessionId = log.header.id;
    this.#visibleNow = visibleNow;
    this.#shown = idsOf(visibleNow());
    this.#hidden = idsOf(log.items);
    this.#edits = log.edits;
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

  async append(drafts: readonly EntryDraft[], { run }: AppendOptions): Promise<LogAppended> {
    const kept = drafts.map((draft) => this.#keptOf(draft));
    const entries = kept.every((some) => some.length === 0) ? [] : [...(await this.#log.append(kept.flat()))];
    for (const entry of entries) {
      if (entry.type === "custom") this.#passed = true;
      if (entry.type === "message" && isAnswer(entry.message)) this.#answer = entry;
    }
    const seen = drafts.map((draft, index): Entry => {
      const stored = kept[index]?.length === 0 ? null : (entries.shift() ?? null);
      const { id, parentId, timestamp, seq } = stored ?? this.#unstored(draft);
      return Object.assign({}, draft, { id, parentId, timestamp, seq, run }) as Entry;
    });
    return { entries: seen, head: { leafId: this.#log.leafId } };
  }

  head(): Promise<SessionHead> {
    return this.#log.head();
  }

  async acquire(): Promise<void> {}

  async release(): Promise<void> {}

  /** The group itself follows the log. */
  follow(): null {
    return null;
  }

  editedRows(): readonly RowInit[] | null {
    if (this.#log.edits === this.#edits) return null;
    this.#edits = this.#log.edits;
    const { name } = this.#seat;
    const isSeen = ({ turn: { turnId }, message }: GroupItem): boolean =>
      this.#shown.has(turnId) || (!this.#hidden.has(turnId) && message.agent === name);
    return rowsFor(name, this.#visibleNow().filter(isSeen));
  }

  /** Of the entries addressed to the group's run, answers to questions go to the agent that is running. */
  messages(onMessage: (message: RunMessage) => void): LogFollower {
    return this.#log.follow((entry) => {
      if (isAddressedTo(this.#log.run.runId, entry, this.#log.header) && entry.type === "approval") onMessage(entry);
    });
  }

  /**
   * The stamp of an entry that only the agent's run sees. It has the last stored position, because the next one belongs
   * to the next stored entry.
   */
  #unstored({ id = uuidv7() }: EntryDraft): Pick<Entry, "id" | "parentId" | "timestamp" | "seq"> {
    return { id, parentId: this.#log.leafId, timestamp: new Date().toISOString(), seq: this.#log.version - 1 };
  }

  #keptOf(draft: EntryDraft): readonly EntryDraft[] {
    // A summary of one agent's view must not replace what the other agents see.
    if (draft.type === "compaction") return [];
    // The group records its own start and end.
    if (draft.type === "run") return [];
    const { name, visibility } = this.#seat;
    // A reminder of one agent is not visible to the others.
    if (draft.type === "custom_message") return [{ ...draft, details: { visibleTo: [name] } }];
    if (draft.type !== "message") return [draft];
    const { message } = draft;
    if (!isAnswer(message)) return [{ ...draft, message: workMessage(name, message) }];
    if (isEmpty(message)) return [passDraft(name, message)];
    return [{ ...draft, message: answerMessage(name, visibility, message) }];
  }
}

/** Whether a message ends a run: an answer without calls, or one that was cut off, whose calls are not run. */
function isAnswer(message: Message): message is AssistantMessage {
  if (message.role !== "assistant" || message.stopReason === "aborted") return false;
  return isCutShort(message) || (message.toolCalls ?? []).length === 0;
}
