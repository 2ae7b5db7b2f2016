import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../session/check-arguments.ts";
import { SessionError, SessionNotFoundError, show } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";
import type { ExportSource } from "./export-source.ts";
import { createSteppedSanitizer } from "./sanitizer.ts";

/** What a session can be exported as. */
export type ExportFormat = "jsonl" | "markdown" | "html";

/** Every format of an export. */
export const EXPORT_FORMATS: readonly ExportFormat[] = ["jsonl", "markdown", "html"];

/** How a session is exported. */
export interface ExportOptions {
  readonly format: ExportFormat;
  /** Take out secrets and home directories; `Sanitizer` says how. */
  readonly sanitize?: boolean;
  /** Export the path that ends here (null: before the root) instead of the active one, and in JSONL nothing else. */
  readonly leafId?: string | null;
}

const EXPORT_KEYS: KeysOf<ExportOptions> = { format: true, sanitize: true, leafId: true };

/**
 * A session as text, in pieces.
 *
 * - `jsonl` is a file of the jsonl store, with every entry of the log: `SessionTree.open` opens it and `importSession`
 *   takes it in. With `leafId` it holds that path, its labels and the name. Checkpoints are not part of a log; `copySession`
 *   takes them along.
 * - `markdown` is the path for reading, what tools did folded away. What was said cannot pass for anything else in it.
 * - `html` is the path as one page that opens without a network and runs nothing, whatever was said.
 * - What is appended meanwhile is left out, and a session that is deleted meanwhile ends the export with an error.
 * - The log is read as it is written out, more than once where that saves memory; only ids and labels are held.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`; `UNKNOWN_ENTRY` or `INVALID_ENTRY` for a leaf that is not there or is a
 * fact; `INVALID_OPTION` for an unknown format.
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
  const head = await store.head(sessionId);
  if (head === null) throw new SessionNotFoundError(sessionId);
  const leafId = options.leafId === undefined ? head.leafId : options.leafId;
  const source: ExportSource = { store, head, leafId, sanitizer: sanitize ? createSteppedSanitizer() : null };
  // Each format is loaded when it is asked for: a program that exports nothing need not wait for any.
  if (format === "jsonl") {
    const { exportJsonl } = await import("./export-jsonl.ts");
    yield* exportJsonl(source, options.leafId !== undefined);
  } else if (format === "markdown") {
    const { exportMarkdown } = await import("./export-markdown.ts");
    yield* exportMarkdown(source);
  } else {
    const { exportHtml } = await import("./export-html.ts");
    yield* exportHtml(source);
  }
}
