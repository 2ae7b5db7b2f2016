import type { CacheReport } from "../../session/context/cache-report.ts";
import type { Entry, EntryOf } from "../../session/log/entry.ts";
import type { SessionState } from "../../session/state/state.ts";
import type { EditPreview } from "../../session/context/edits.ts";
import type { BlobRef } from "../../session/blob.ts";
import type { CompareRequest, ComparisonView, ReadTree, TreeView } from "../tree-wire.ts";
import type * as wire from "../wire.ts";
import { type EventStream, followEvents, type FollowOptions } from "./event-stream.ts";
import { type Ask, type CallOptions, pathOf, type Transport, type UploadOptions, allPages } from "./transport.ts";

/** Selects a page of a path: the last `limit` entries, or those directly before or after an entry. */
export interface ReadPath {
  readonly leafId?: string;
  readonly limit?: number;
  readonly before?: string;
  readonly after?: string;
}

/** The format and the options of an export. */
export interface ExportRequest {
  readonly format?: "jsonl" | "markdown" | "html";
  /** Replaces what looks like a secret by placeholders. */
  readonly sanitize?: boolean;
  readonly leafId?: string;
}

/** The position from which to watch a session: after a position of its log, or now. */
export interface WatchRequest extends FollowOptions {
  readonly after?: number;
}

/** Sessions with their logs, trees, contexts, branches and statuses. */
export class SessionsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** One page of sessions, those with the latest message first. */
  async list(query: wire.ListSessions = {}, options: CallOptions = {}): Promise<wire.Page<wire.ListedSession>> {
    return this.#transport.json({ path: "/api/sessions", query, ...options });
  }

  /** All sessions, page by page. */
  listAll(query: wire.ListSessions = {}, options: CallOptions = {}): AsyncIterable<wire.ListedSession> {
    return allPages((cursor) => this.list({ ...query, ...(cursor === null ? {} : { cursor }) }, options));
  }

  async create(init: wire.NewSession = {}, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post("/api/sessions", init, options);
  }

  /** Imports a session from the text of a JSONL file, or from a file of another program. */
  async importFile(jsonl: string | Uint8Array | Blob, options: CallOptions = {}): Promise<wire.ImportedView> {
    const body = { type: "application/x-ndjson", content: jsonl };
    return this.#transport.json({ method: "POST", path: "/api/import", body, ...options });
  }

  /**
   * Stores the bytes of an image or a file; a message of the session then refers to them with `{ type, mediaType, ...ref }`.
   * Large files are uploaded in this way, as a request with data has at most 16 MiB.
   */
  async uploadBlob(id: string, bytes: Uint8Array | Blob, options: UploadOptions = {}): Promise<BlobRef> {
    return this.#transport.upload(pathOf`/api/sessions/${id}/blobs`, bytes, options);
  }

  /** The bytes of an image or a file of a session, by its part of a message or the name of its blob, `sha256:…`. */
  async blob(id: string, part: string | BlobRef, options: CallOptions = {}): Promise<Uint8Array> {
    const name = typeof part === "string" ? part : part?.blob;
    const path = pathOf`/api/sessions/${id}/blobs/${typeof name === "string" ? name.replace(/^sha256:/, "") : ""}`;
    return new Uint8Array(await (await this.#transport.send({ path, ...options })).arrayBuffer());
  }

  async get(id: string, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}`, ...options });
  }

  /** The state of a session, with its turns unless `turns` is false. */
  async state(id: string, query: { readonly turns?: boolean } = {}, options: CallOptions = {}): Promise<SessionState> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/state`, query, ...options });
  }

  /** Changes the name or the variables of a session. */
  async update(id: string, patch: wire.SessionPatch, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#transport.json({ method: "PATCH", path: pathOf`/api/sessions/${id}`, json: patch, ...options });
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.empty({ method: "DELETE", path: pathOf`/api/sessions/${id}`, ...options });
  }

  async undelete(id: string, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/undelete`, {}, options);
  }

  /** Suspends a session: it accepts no turns until it is resumed. */
  async suspend(id: string, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/suspend`, {}, options);
  }

  async resume(id: string, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/resume`, {}, options);
  }

  /** Closes a session for good. */
  async close(id: string, request: wire.ReasonRequest = {}, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/close`, request, options);
  }

  /** One page of a session's log. */
  async entries(id: string, query: wire.ReadEntries = {}, options: CallOptions = {}): Promise<wire.Page<Entry>> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/entries`, query, ...options });
  }

  /** A session's log, page by page. */
  entriesAll(id: string, query: wire.ReadEntries = {}, options: CallOptions = {}): AsyncIterable<Entry> {
    const side = query?.reverse === true ? "before" : "after";
    return allPages((next) =>
      this.entries(id, { ...query, ...(next === null ? {} : { [side]: Number(next) }) }, options),
    );
  }

  async entry(id: string, entryId: string, options: CallOptions = {}): Promise<Entry> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/entries/${entryId}`, ...options });
  }

  /** Appends entries, all or none. */
  async append(id: string, request: wire.NewEntries, options: CallOptions = {}): Promise<wire.AppendView> {
    return this.#post(pathOf`/api/sessions/${id}/entries`, request, options);
  }

  async addTurn(id: string, turn: wire.NewTurn, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/turns`, turn, options);
  }

  /** One page of a path, oldest entry first: its end, or the entries before or after another one. */
  async path(id: string, query: ReadPath = {}, options: CallOptions = {}): Promise<wire.Page<Entry>> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/path`, query, ...options });
  }

  /** The tree of a session, without the content of its nodes. */
  async tree(id: string, given?: ReadTree & CallOptions): Promise<TreeView> {
    const { signal, ...query } = given ?? {};
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/tree`, query, ...options });
  }

  /** Moves the leaf to another entry, below which the next one is appended. */
  async moveLeaf(id: string, request: wire.LeafRequest, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/leaf`, request, options);
  }

  /** Labels an entry; null removes the label. */
  async label(id: string, entryId: string, label: string | null, options: CallOptions = {}): Promise<Entry> {
    const path = pathOf`/api/sessions/${id}/labels/${entryId}`;
    return this.#transport.json({ method: "PUT", path, json: { label }, ...options });
  }

  /** Hides a side branch for good. */
  async prune(id: string, entryId: string, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/prune`, { entryId }, options);
  }

  /** The context of the next request to a model. */
  async context(id: string, options: CallOptions = {}): Promise<wire.ContextView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/context`, ...options });
  }

  /** Previews a compaction. */
  async previewCompaction(
    id: string,
    query: { readonly keepRecentTokens?: number } = {},
    options: CallOptions = {},
  ): Promise<wire.CompactionPreview> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/compaction`, query, ...options });
  }

  /** Replaces the older part of the context by a summary. */
  async compact(id: string, request: wire.CompactRequest = {}, options: CallOptions = {}): Promise<Entry | null> {
    return (await this.#post<wire.CompactView>(pathOf`/api/sessions/${id}/compact`, request, options)).entry;
  }

  /** Undoes a compaction: the one in force, unless the request names another. */
  async undoCompaction(
    id: string,
    request: wire.UndoCompactionRequest = {},
    options: CallOptions = {},
  ): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/undo-compaction`, request, options);
  }

  /** Edits the context: leaves an entry out of what models see, or puts a message in its place. The log keeps what was said. */
  async edit(id: string, request: wire.EditRequest, options: CallOptions = {}): Promise<EntryOf<"context_edit">> {
    return (await this.#post<wire.EditView>(pathOf`/api/sessions/${id}/edits`, request, options)).entry;
  }

  /** Previews the effect of an edit; for the id of an edit, the effect of `undoEdit`. */
  async previewEdit(
    id: string,
    request: Omit<wire.EditRequest, "reason">,
    options: CallOptions = {},
  ): Promise<EditPreview> {
    return this.#post(pathOf`/api/sessions/${id}/edits/preview`, request, options);
  }

  /** Takes an edit back. */
  async undoEdit(id: string, editId: string, options: CallOptions = {}): Promise<EntryOf<"context_edit">> {
    return (await this.#post<wire.EditView>(pathOf`/api/sessions/${id}/undo-edit`, { editId }, options)).entry;
  }

  /** How the answers used their providers' prompt caches, and why some read less than they could. */
  async cache(id: string, query: wire.ReadCache = {}, options: CallOptions = {}): Promise<CacheReport> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/cache`, query, ...options });
  }

  /** Forks the session: makes a new one that begins with its entries. */
  async fork(id: string, request: wire.ForkRequest, options: CallOptions = {}): Promise<wire.SessionView> {
    return this.#post(pathOf`/api/sessions/${id}/forks`, request, options);
  }

  /** One page of the sessions that were forked from this one. */
  async forks(id: string, query: ListForks = {}, options: CallOptions = {}): Promise<wire.Page<wire.ListedSession>> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/forks`, query, ...options });
  }

  /** All sessions that were forked from this one, page by page. */
  forksAll(id: string, query: ListForks = {}, options: CallOptions = {}): AsyncIterable<wire.ListedSession> {
    return allPages((cursor) => this.forks(id, { ...query, ...(cursor === null ? {} : { cursor }) }, options));
  }

  /** Compares two paths: their last common entry, and the first entries of each after it. */
  async compare(id: string, query: CompareRequest, options: CallOptions = {}): Promise<ComparisonView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/comparison`, query, ...options });
  }

  /** Merges the turns of a branch into this session; `dryRun` only previews the merge. */
  async merge(id: string, request: wire.MergeRequest, options: CallOptions = {}): Promise<wire.MergeView> {
    return this.#post(pathOf`/api/sessions/${id}/merges`, request, options);
  }

  async analytics(id: string, options: CallOptions = {}): Promise<wire.SessionAnalyticsView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/analytics`, ...options });
  }

  /** The ancestors and the descendants of a session. */
  async lineage(id: string, options: CallOptions = {}): Promise<wire.LineageView> {
    return this.#transport.json({ path: pathOf`/api/sessions/${id}/lineage`, ...options });
  }

  /** The lineage as the source text of a diagram, or as JSONL. */
  async lineageText(id: string, format: "mermaid" | "dot" | "jsonl", options: CallOptions = {}): Promise<string> {
    const ask: Ask = { path: pathOf`/api/sessions/${id}/lineage`, query: { format }, ...options };
    return (await this.#transport.send(ask)).text();
  }

  /** The session as a file. */
  async exportFile(id: string, request: ExportRequest = {}, options: CallOptions = {}): Promise<Blob> {
    const ask: Ask = { path: pathOf`/api/sessions/${id}/export`, query: request, ...options };
    return (await this.#transport.send(ask)).blob();
  }

  /** The entries of a session as they are appended, whichever process appends them. */
  watch(id: string, request?: WatchRequest): EventStream<Entry> {
    const { after, ...options } = request ?? {};
    return followEvents({
      ...(after === undefined ? {} : { lastEventId: String(after) }),
      ...options,
      transport: this.#transport,
      path: pathOf`/api/sessions/${id}/watch`,
      isLast: () => false,
    });
  }

  #post<T>(path: string, json: object, options: CallOptions): Promise<T> {
    return this.#transport.json({ method: "POST", path, json, ...options });
  }
}

/** Which forks to list. */
export interface ListForks {
  readonly limit?: number;
  readonly cursor?: string;
}
