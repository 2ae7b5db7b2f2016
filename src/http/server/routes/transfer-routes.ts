import { z } from "zod";
import {
  type ExportFormat,
  exportSession,
  type ImportOptions,
  importSession,
  readLines,
} from "../../../export/index.ts";
import { type ForeignFormat, formatOfText, type ImportTarget, importForeign } from "../../../interop/formats/index.ts";
import { uuidv7 } from "../../../internal/uuid.ts";
import { SessionError } from "../../../session/errors.ts";
import { encodeSegment } from "../../path-segment.ts";
import type { ImportFound } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import { checkContentType } from "../read-body.ts";
import { answer, answerStream, route, type ServerApp } from "../route.ts";
import { id, queryFlag } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { readView, visibleHead } from "./session-access.ts";
import { importedView } from "./wire-schemas.ts";

const START_BYTES = 64 * 1024;
const JSONL = "application/jsonl";
const TYPES: Readonly<Record<ExportFormat, { readonly contentType: string; readonly ending: string }>> = {
  jsonl: { contentType: JSONL, ending: "jsonl" },
  markdown: { contentType: "text/markdown; charset=utf-8", ending: "md" },
  html: { contentType: "text/html; charset=utf-8", ending: "html" },
};

/** The errors that an invalid file in a request can cause. */
const FILE_FAULTS: ReadonlySet<string> = new Set([
  "DAMAGED",
  "NOT_A_SESSION",
  "UNSUPPORTED_VERSION",
  "UNKNOWN_ENTRY",
  "INVALID_HEADER",
  "INVALID_ENTRY",
  "INVALID_VALUE",
  "INVALID_ID",
]);

/** Adds the routes that export and import sessions. */
export function mountTransfer(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/sessions/:id/export",
    operationId: "exportSession",
    summary:
      "Exports a session as a file: its log as JSONL, or Markdown or HTML; `sanitize` replaces what looks like a secret.",
    query: z.strictObject({
      format: z.enum(["jsonl", "markdown", "html"]).optional(),
      sanitize: queryFlag.optional(),
      leafId: id.optional(),
    }),
    answers: { 200: { description: "The file.", contentType: JSONL } },
    async handle({ param, query, caller, work }) {
      const { header } = await visibleHead(services, param("id"), caller);
      const { format = "jsonl", sanitize = false, leafId } = query;
      const leaf = leafId === undefined ? {} : { leafId };
      const pieces = exportSession(services.store, header.id, { format, sanitize, ...leaf });
      const { contentType, ending } = TYPES[format];
      return answerStream(work, pieces, {
        "content-type": contentType,
        "content-disposition": `attachment; filename="session-${header.id}.${ending}"`,
      });
    },
  });
  route(app, {
    method: "post",
    path: "/api/import",
    operationId: "importSession",
    summary:
      "Imports an exported log as a new session of the caller, or the session file of another program; importing that file again adds only its new entries. Only the messages count: approvals, runs and open questions in the file have no effect.",
    bodyType: JSONL,
    answers: {
      201: {
        description: "The session; for another program's file, also a report of what was found in it.",
        schema: importedView,
      },
    },
    async handle({ request, caller, bytes }) {
      checkContentType(request, JSONL, "application/x-ndjson", "application/json");
      const { maxSessionsPerUser: maxOpenPerUser, variablesBytesMax } = services.manager.config;
      const limits = { maxOpenPerUser, variablesBytesMax };
      const { importEntriesMax: entriesMax } = app.limits;
      const { userId, admin: counts } = caller;
      await services.storage.addSession(userId);
      const file = await peek(bytes());
      const format = formatOfText(file.start);
      // Never trusted: a request cannot import a log with its approvals and runs.
      const { sessionId, found } =
        format === null
          ? await importOwn(services, file.bytes, { userId, id: uuidv7(), counts, entriesMax, limits })
          : await importOther(format, file.bytes, {
              store: services.store,
              userId,
              counts,
              limits: { ...limits, entriesMax },
            });
      const headers = { location: `/api/sessions/${encodeSegment(sessionId)}` };
      const view = await readView(services, sessionId, caller);
      return answer({ ...view, ...(found === null ? {} : { found }) }, { status: 201, headers });
    },
  });
}

/** An imported session, and the report on the file if another program has written it. */
interface Imported {
  readonly sessionId: string;
  readonly found: ImportFound | null;
}

async function importOwn(
  services: ServerServices,
  bytes: AsyncIterable<Uint8Array>,
  options: ImportOptions,
): Promise<Imported> {
  const { header } = await importSession(services.store, readLines(bytes), options).catch(asRefusal);
  return { sessionId: header.id, found: null };
}

async function importOther(
  format: ForeignFormat,
  bytes: AsyncIterable<Uint8Array>,
  target: ImportTarget,
): Promise<Imported> {
  const { sessions, report } = await importForeign(target, format, bytes).catch(asRefusal);
  const [main] = sessions;
  if (main === undefined) {
    throw new HttpError("INVALID_REQUEST", "The body is a file of another program, but contains no session.");
  }
  if (main.outcome === "deleted") {
    throw new HttpError("INVALID_REQUEST", "The session was deleted here; undelete it instead of importing it again.");
  }
  const { mapped, kept, lost } = report;
  const unknownKinds = Object.fromEntries(report.unknownKinds);
  const found = { format: format.name, added: main.added, mapped, kept, lost, unknownKinds };
  return { sessionId: main.sessionId, found };
}

/** Reads the beginning of a file as text, and returns all of its bytes as a stream. */
async function peek(pieces: AsyncIterable<Uint8Array>) {
  const iterator = pieces[Symbol.asyncIterator]();
  const held: Uint8Array[] = [];
  let size = 0;
  while (size < START_BYTES) {
    const { value, done } = await iterator.next();
    if (done === true) break;
    held.push(value);
    size += value.length;
  }
  async function* bytes(): AsyncGenerator<Uint8Array, void, undefined> {
    yield* held;
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
  }
  return { start: Buffer.concat(held).subarray(0, START_BYTES).toString("utf8"), bytes: bytes() };
}

/** An error in an uploaded file is the client's; the same code for a stored session is the server's. */
function asRefusal(error: unknown): never {
  if (!(error instanceof SessionError) || !FILE_FAULTS.has(error.code)) throw error;
  throw new HttpError("INVALID_REQUEST", "The body is not a session log that this version can read.", {
    problems: [{ path: "body", message: error.message }],
  });
}
