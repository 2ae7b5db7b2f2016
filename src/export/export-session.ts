import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../session/check-arguments.ts";
import { SessionError, SessionNotFoundError, show } from "../session/errors.ts";
import type { StoredBlob } from "../session/blob.ts";
import type { SessionStore } from "../session/store.ts";
import type { ExportSource } from "./export-source.ts";
import { createSteppedSanitizer } from "./sanitizer.ts";

/** A format of `exportSession`. */
export type ExportFormat = "jsonl" | "markdown" | "html";

/** All export formats. */
export const EXPORT_FORMATS: readonly ExportFormat[] = ["jsonl", "markdown", "html"];

/** Options of `exportSession`. */
export interface ExportOptions {
  readonly format: ExportFormat;
  /** Replaces secrets and home directories by placeholders; see `Sanitizer`. */
  readonly sanitize?: boolean;
  /** Exports the path that ends here (null: an empty path) instead of the active one. JSONL then holds only that path. */
  readonly leafId?: string | null;
  /**
   * JSONL: called once with each image and file that is stored beside the log, before an entry that refers to it. The text then
   * has references instead of data.
   */
  readonly onBlob?: (blob: StoredBlob) => Promise<void> | void;
}

const EXPORT_KEYS: KeysOf<ExportOptions> = { format: true, sanitize: true, leafId: true, onBlob: true };

/**
 * Yields a session as text, in pieces.
 *
 * - `jsonl` is a file of the jsonl store with every entry of the log: `SessionTree.open` opens it, `importSession` imports it.
 *   With `leafId` it holds that path, its labels and the name. Checkpoints are not part of a log; `copySession` copies them.
 * - `markdown` is the path for reading, with tool calls in collapsed sections. Content of messages cannot imitate other turns.
 * - `html` is the path as one page that needs no network and runs no script, whatever the messages contain.
 * - Entries that are appended during the export are not included. If the session is deleted meanwhile, the export throws.
 * - The log is streamed and may be read more than once; only ids and labels are held in memory.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`; `UNKNOWN_ENTRY` if the leaf does not exist, `INVALID_ENTRY` if it is a fact;
 * `INVALID_OPTION` for an unknown format.
 */
export async function* exportSession(
  store: SessionStore,
  sessionId: string,
  options: ExportOptions,
): AsyncGenerator<string, void, undefined> {
  checkStoreArgument(store, "exportSession");
  checkOptionsOf(options, EXPORT_KEYS, "exportSession");
  const { format, sanitize = false } = options;
  if (!EXPORT_FORMATS.includes(format)) {
    throw new SessionError(
      "INVALID_OPTION",
      `A session cannot be exported as ${show(format)}; choose one of ${EXPORT_FORMATS.join(", ")}.`,
    );
  }
  const { onBlob } = options;
  if (onBlob !== undefined && format !== "jsonl")
    throw new SessionError("INVALID_OPTION", `onBlob is for JSONL; an export as ${format} has no references.`);
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  const leafId = options.leafId === undefined ? head.leafId : options.leafId;
  const source: ExportSource = { store, head, leafId, sanitizer: sanitize ? createSteppedSanitizer() : null };
  // Formats are loaded lazily: a program that exports nothing does not load them.
  if (format === "jsonl") {
    const { exportJsonl } = await import("./export-jsonl.ts");
    yield* exportJsonl(source, { onlyPath: options.leafId !== undefined, onBlob: onBlob ?? null });
  } else if (format === "markdown") {
    const { exportMarkdown } = await import("./export-markdown.ts");
    yield* exportMarkdown(source);
  } else {
    const { exportHtml } = await import("./export-html.ts");
    yield* exportHtml(source);
  }
}
