import { type AppendPlan, planNow, type StoredEntry, type Wanted } from "../src/session/log/append-plan.ts";
import { checkDrafts } from "../src/session/log/draft.ts";
import type { Entry, EntryBody, EntryDraft } from "../src/session/log/entry.ts";
import { emptyHead, type PathSummary, type SessionHead } from "../src/session/log/fold.ts";
import { createHeader, type SessionHeader } from "../src/session/log/header.ts";
import type { AssistantMessage, Content, Message, ToolCall } from "../src/session/message.ts";
import { type Settings, SettingsTable } from "../src/session/log/settings.ts";
import type { AppendOptions } from "../src/session/store.ts";
import type { Usage } from "../src/session/usage.ts";

/** A time that increases with the position in a log. */
export function timeAt(seq: number): string {
  return new Date(Date.UTC(2024, 0, 1) + seq * 1000).toISOString();
}

export function header(init: Partial<SessionHeader> = {}): SessionHeader {
  return createHeader({ id: "sample", createdAt: timeAt(0), ...init });
}

export function user(content: Content): Message {
  return { role: "user", content };
}

export function assistant(content: Content | null, extras: Partial<AssistantMessage> = {}): Message {
  return { role: "assistant", content, ...extras };
}

/** An assistant message that calls tools, one for each id. */
export function calls(...ids: readonly string[]): Message {
  return assistant(null, { toolCalls: ids.map((id) => call(id)), stopReason: "tool_calls" });
}

export function call(id: string, name = "look", args = "{}"): ToolCall {
  return { id, name, arguments: args };
}

export function result(toolCallId: string, content: Content = "done"): Message {
  return { role: "tool", toolCallId, name: "look", content };
}

export function usage(inputTokens: number, outputTokens = 0): Usage {
  return { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

export function message(id: string, said: Message): EntryDraft {
  return { type: "message", id, message: said };
}

/** A stored entry, for logs that no store would write. */
export function entryAt(seq: number, id: string, parentId: string | null, body: EntryBody): Entry {
  return { ...body, id, parentId, timestamp: timeAt(seq), seq };
}

/** User messages with the given ids and parents. */
export function nodesOf(parents: Readonly<Record<string, string | null>>): Entry[] {
  return Object.entries(parents).map(([id, parentId], seq) =>
    entryAt(seq, id, parentId, { type: "message", message: user(id) }),
  );
}

/** One session's log in memory. Like a store, it looks up only what an append plan needs. */
export class SampleLog {
  head: SessionHead;
  readonly entries: Entry[] = [];
  /** The look-ups of all plans, in order. */
  readonly wanted: Wanted[] = [];
  readonly #stored = new Map<string, StoredEntry>();
  readonly #settings = new SettingsTable();

  constructor(init: Partial<SessionHeader> = {}) {
    this.head = emptyHead(header(init));
  }

  plan(drafts: readonly EntryDraft[], options: AppendOptions = {}, leaseToken: number | null = null): AppendPlan {
    const checked = checkDrafts(drafts, { verbatim: options.verbatim === true });
    const input = { head: this.head, drafts: checked, options, leaseToken, now: timeAt(this.head.version) };
    return planNow(input, (wanted) => {
      this.wanted.push(wanted);
      const stored = wanted.ids.flatMap((id) => this.#stored.get(id) ?? []);
      return {
        entries: new Map(stored.map((each) => [each.entry.id, each])),
        settings: new Map(wanted.settings.map((seq) => [seq, this.#settings.at(seq)])),
      };
    }).plan;
  }

  append(drafts: readonly EntryDraft[], options: AppendOptions = {}): readonly Entry[] {
    const plan = this.plan(drafts, options);
    for (const stored of plan.added) {
      this.entries.push(stored.entry);
      this.#stored.set(stored.entry.id, stored);
      this.#settings.add(stored.path?.settings ?? null);
    }
    this.head = plan.head;
    return plan.entries;
  }

  /** Appends messages with the given ids. */
  say(messages: Readonly<Record<string, Message>>): this {
    this.append(Object.entries(messages).map(([id, said]) => message(id, said)));
    return this;
  }

  /** The settings at the leaf, or on another path. */
  settings(path: PathSummary = this.head.path): Settings {
    return this.#settings.read(path.settings);
  }

  pathOf(id: string): StoredEntry["path"] {
    return this.#stored.get(id)?.path ?? null;
  }
}
