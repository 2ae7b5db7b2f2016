import type { Entry, EntryDraft } from "../session/entry.ts";
import type { SessionHead } from "../session/fold.ts";
import type { SessionHeader } from "../session/header.ts";
import type { AppendOptions, AppendResult, SessionStore } from "../session/store.ts";
import type { Damage } from "../stores/jsonl/index.ts";
import type { FileOptions } from "./file-options.ts";

/** Where a tree's session is kept, and where one derived from it goes. */
export interface TreeBacking {
  readonly store: SessionStore;
  /** The session's file, or where it will be. */
  readonly path: string | null;
  readonly damage: readonly Damage[];
  readonly persisted: boolean;
  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult>;
  /** Writes what still waits in memory; the head afterwards, or null when nothing waited. */
  flush(sessionId: string): Promise<SessionHead | null>;
  /** Makes a session with these entries in the same kind of place. */
  derive(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession>;
  close(): Promise<void>;
}

/** A session and where it is kept. */
export interface OpenedSession {
  readonly backing: TreeBacking;
  readonly head: SessionHead;
}

/** A session of a store that someone else opened and closes. */
export class StoreBacking implements TreeBacking {
  readonly store: SessionStore;
  readonly path = null;
  readonly damage: readonly Damage[] = [];

  constructor(store: SessionStore) {
    this.store = store;
  }

  get persisted(): boolean {
    return this.store.capabilities.durable;
  }

  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult> {
    return this.store.append(sessionId, drafts, options);
  }

  async flush(): Promise<null> {
    return null;
  }

  async derive(header: SessionHeader, entries: readonly Entry[]): Promise<OpenedSession> {
    return { backing: this, head: await this.store.create(header, { entries }) };
  }

  async close(): Promise<void> {}
}
