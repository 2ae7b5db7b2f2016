import type { Approval } from "../../../agent/run-event.ts";
import type { RunError } from "../../../agent/run-error.ts";
import type { GroupOutcome } from "../../../group/group-event.ts";
import { type GroupEnd, groupMarkOf } from "../../../group/group-progress.ts";
import { defined } from "../../../internal/defined.ts";
import type { JsonValue } from "../../../internal/json.ts";
import type { Entry, EntryOf } from "../../../session/log/entry.ts";
import { textOf } from "../../../session/message.ts";
import { type OpenRun, stepRuns } from "../../../session/log/open-runs.ts";
import type { RunView, QuestionView, WireRunEvent } from "../../run-wire.ts";
import { recordedError } from "./run-feed.ts";

/** An event that says nothing yet of whose it is. */
type Told = WireRunEvent extends infer Event ? (Event extends unknown ? Omit<Event, "runId"> : never) : never;

/** What a log does not say of its runs. */
export interface StoryAbout {
  readonly sessionId: string;
  /** The agents of a group, by its name. */
  readonly agentsOf: (group: string) => readonly string[];
}

/**
 * One run as its session's log tells it, entry by entry: how it stands, and the events of it that last. It is the same in
 * every process; what others than the run have said meanwhile does not count.
 */
export class RunStory {
  readonly runId: string;
  readonly #about: StoryAbout;
  request: EntryOf<"run_request"> | null = null;
  startedAt: string | null = null;
  endedAt: string | null = null;
  /** The claim under which it goes on. */
  claim = 0;
  /** How it ended; null while it is open. */
  end: Extract<RunView["status"], "finished" | "failed" | "cancelled"> | null = null;
  error: RunError | null = null;
  /** The value that it was asked for. */
  output: JsonValue | undefined;
  #open: OpenRun | null = null;
  readonly #questions = new Map<string, QuestionView>();
  /** Those of runs inside of tools. */
  readonly #inner = new Set<string>();
  #round = 0;
  #messageId: string | null = null;
  /** Of a group: who of it speaks, who failed, and why it stopped. */
  #agent: string | null = null;
  #failure: { readonly agent: string; readonly error: RunError } | null = null;
  #reason: GroupEnd = "complete";
  #isGroup = false;

  constructor(runId: string, about: StoryAbout) {
    this.runId = runId;
    this.#about = about;
  }

  /** Where it stands while it is open. */
  get state(): OpenRun["state"] {
    return this.#open?.state ?? "requested";
  }

  /** What it asks and nobody has answered. */
  get questions(): readonly QuestionView[] {
    return this.end === null ? [...this.#questions.values()] : [];
  }

  /** Takes the next entry of the log; the event that it makes, or null. */
  take(entry: Entry): WireRunEvent | null {
    if (this.end !== null || entry.inherited === true) return null;
    const told = this.#tell(entry);
    return told === null ? null : ({ ...told, runId: this.runId } as WireRunEvent);
  }

  #tell(entry: Entry): Told | null {
    const before = this.#open;
    const open = stepRuns(before === null ? [] : [before], entry);
    this.#open = open.find(({ runId }) => runId === this.runId) ?? null;
    if (before !== null && this.#open === null) return this.#ended(entry);
    if ("runId" in entry && entry.runId !== this.runId && !(this.#isGroup && entry.type === "approval")) return null;
    switch (entry.type) {
      case "run_request":
        this.request = entry;
        this.#isGroup = entry.group !== undefined;
        return null;
      case "run":
        if (entry.phase !== "started") return this.#ended(entry);
        return entry.sandbox !== undefined && before?.state === "started" ? null : this.#started(entry);
      case "run_parked":
        return this.#parked(entry);
      case "approval":
        return this.#asked(entry);
      case "compaction": {
        const { id: entryId, summary, firstKeptEntryId, tokensBefore } = entry;
        if (before?.state !== "started") return null;
        return { type: "compaction", round: this.#round + 1, entryId, summary, firstKeptEntryId, tokensBefore };
      }
      case "message":
      case "custom":
        return this.#said(entry, before?.state === "started");
      default:
        return null;
    }
  }

  #started({ timestamp, claim = 0 }: EntryOf<"run">): Told {
    const resumed = this.startedAt !== null;
    this.startedAt ??= timestamp;
    this.claim = claim;
    // What runs inside of tools asked is gone with the process that had them.
    for (const question of this.#inner) this.#questions.delete(question);
    this.#inner.clear();
    this.#round = 0;
    if (this.#messageId === null) return { type: "run-started", claim };
    const { sessionId, agentsOf } = this.#about;
    const agents = agentsOf(this.request?.group ?? "");
    return { type: "group-started", claim, sessionId, messageId: this.#messageId, agents, resumed };
  }

  #asked({ id, callId, timestamp, decision, question, asked }: EntryOf<"approval">): Told | null {
    if (decision !== undefined) {
      this.#questions.delete(question ?? callId);
      return null;
    }
    if (asked === undefined) return null;
    const approval = { ...asked, callId, question: id } as unknown as Approval;
    const { innerRunId, following: _following, ...shown } = approval;
    if (innerRunId !== undefined) this.#inner.add(id);
    this.#questions.set(id, { ...shown, askedAt: timestamp });
    const agent = this.#isGroup && this.#agent !== null ? { agent: this.#agent } : {};
    return { type: "approval-required", round: this.#round, approval, ...agent };
  }

  #parked({ questions, expiresAt }: EntryOf<"run_parked">): Told {
    const open = questions.flatMap(({ question }) => this.#questions.get(question) ?? []);
    if (expiresAt !== undefined) for (const asked of open) this.#questions.set(asked.question, { ...asked, expiresAt });
    const approvals = open.map(({ askedAt: _at, expiresAt: _expires, ...approval }) => approval);
    return { type: "run-parked", questions: approvals, expiresAt: expiresAt ?? "" };
  }

  /** What the run itself has said. Others say who they are, or cannot say what is a run's to say. */
  #said(entry: EntryOf<"message" | "custom">, running: boolean): Told | null {
    const mark = groupMarkOf(entry);
    if (mark?.kind === "message") {
      this.#isGroup = true;
      this.#messageId = entry.id;
    }
    // Only the holder of a run can append results; one that repeats the reason of a denial names who gave it.
    const isResult = entry.type === "message" && entry.message.role === "tool";
    if (!running || (entry.by !== undefined && !isResult)) return null;
    if (mark !== null) return this.#saidInGroup(entry, mark);
    if (entry.type !== "message") return null;
    const { message } = entry;
    if (message.role === "tool") {
      return { type: "tool-finished", round: this.#round, callId: message.toolCallId, message };
    }
    if (message.role !== "assistant") return null;
    this.#round += 1;
    return { type: "round-finished", round: this.#round, message, stopReason: message.stopReason ?? "stop" };
  }

  #saidInGroup(entry: EntryOf<"message" | "custom">, mark: Readonly<Record<string, unknown>>): Told | null {
    this.#isGroup = true;
    const { kind } = mark;
    const message = entry.type === "message" ? entry.message : null;
    const agent = message?.agent ?? String(mark.agent ?? "");
    if (kind === "ended") this.#reason = mark.reason as GroupEnd;
    if (kind === "work") this.#agent = agent;
    if (kind === "turn") {
      const text = textOf(message?.content ?? null);
      return { type: "agent-finished", agent, kind: "spoke", turnId: entry.id, text };
    }
    if (kind === "passed") return { type: "agent-finished", agent, kind, turnId: null, text: "" };
    if (kind === "refused") {
      return { type: "agent-finished", agent, kind, turnId: null, text: "", error: recordedError(mark.error) };
    }
    if (kind !== "failed") return null;
    this.#failure = { agent, error: recordedError(message?.metadata?.error) };
    return { type: "agent-failed", ...this.#failure };
  }

  #ended(entry: Entry): Told {
    this.endedAt = entry.timestamp;
    this.#open = null;
    const phase = entry.type === "run" && entry.phase !== "started" ? entry.phase : "cancelled";
    this.end = phase;
    if (phase === "finished" && entry.type === "run") {
      const { truncated = false, usage = null, output } = entry;
      this.output = output;
      if (this.#isGroup) return { type: "group-finished", outcome: { reason: this.#reason } };
      return { type: "run-finished", truncated, usage, ...defined({ output }) };
    }
    this.error = recordedError(entry.type === "run" ? entry.error : `Run ${this.runId} was cancelled.`);
    if (!this.#isGroup) return { type: "run-failed", error: this.error };
    if (this.#failure === null || phase === "cancelled") return { type: "group-failed", error: this.error };
    const outcome: GroupOutcome = { reason: "agent-failed", ...this.#failure };
    return { type: "group-finished", outcome };
  }
}
