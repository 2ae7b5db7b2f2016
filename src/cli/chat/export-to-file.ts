import { type FileHandle, unlink } from "node:fs/promises";
import { extname } from "node:path";
import { openPrivateFile } from "../../internal/private-file.ts";
import { type ExportFormat, exportSession } from "../../export/index.ts";
import { SessionError, type SessionTree } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { makeParent, namedPath } from "../../stores/named-path.ts";

const FORMAT_OF: Readonly<Record<string, ExportFormat>> = { ".jsonl": "jsonl", ".md": "markdown", ".html": "html" };

/**
 * Writes a session to a new file, in the format of the file's extension.
 *
 * @throws {SessionError} `INVALID_OPTION` for another extension, for a missing directory, or if the file exists; an
 * existing file is not changed.
 */
export async function exportToFile(tree: SessionTree, named: string, signal: AbortSignal): Promise<void> {
  const path = namedPath(named);
  const format = FORMAT_OF[extname(path).toLowerCase()];
  if (format === undefined) {
    throw new SessionError(
      "INVALID_OPTION",
      `${show(path)} must end with one of ${Object.keys(FORMAT_OF).join(", ")}.`,
    );
  }
  await makeParent(path, { what: "the file" });
  const file = await openNew(path);
  try {
    for await (const piece of exportSession(tree.store, tree.id, { format })) {
      signal.throwIfAborted();
      await file.appendFile(piece);
    }
  } catch (error) {
    await unlink(path);
    throw error;
  } finally {
    await file.close();
  }
}

async function openNew(path: string): Promise<FileHandle> {
  try {
    return await openPrivateFile(path, "wx");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
    throw new SessionError("INVALID_OPTION", `${show(path)} already exists; name another file.`, { cause });
  }
}
