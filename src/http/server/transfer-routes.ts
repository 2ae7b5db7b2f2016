import { z } from "zod";
import { exportSession, importSession, readLines } from "../../export/index.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionError } from "../../session/errors.ts";
import { encodeSegment } from "../path-segment.ts";
import type { ExportFormat } from "../wire.ts";
import { HttpError } from "./http-error.ts";
import { checkContentType } from "./read-body.ts";
import { answer, route, type ServerApp } from "./route.ts";
import { id, queryFlag } from "./schema.ts";
import type { ServerServices } from "./server-services.ts";
import { readView, visibleHead } from "./session-access.ts";
import { sessionView } from "./wire-schemas.ts";

const JSONL = "application/jsonl";
const TYPES: Readonly<Record<ExportFormat, { readonly contentType: string; readonly ending: string }>> = {
  jsonl: { contentType: JSONL, ending: "jsonl" },
  markdown: { contentType: "text/markdown; charset=utf-8", ending: "md" },
  html: { contentType: "text/html; charset=utf-8", ending: "html" },
};

/** What can be wrong with the file that a request carries. */
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

/** Sessions as files. */
export function mountTransfer(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/sessions/:id/export",
    operationId: "exportSession",
    summary: "A session as a file: its log, or something to read; with `sanitize`, without what looks like a secret.",
    query: z.strictObject({
      format: z.enum(["jsonl", "markdown", "html"]).optional(),
      sanitize: queryFlag.optional(),
      leafId: id.optional(),
    }),
    answers: { 200: { description: "The file.", contentType: JSONL } },
    async handle({ param, query, caller }) {
      const { header } = await visibleHead(services, param("id"), caller);
      const { format = "jsonl", sanitize = false, leafId } = query;
      const leaf = leafId === undefined ? {} : { leafId };
      const pieces = exportSession(services.store, header.id, { format, sanitize, ...leaf });
      const { contentType, ending } = TYPES[format];
      return new Response(await streamOf(pieces), {
        headers: {
          "content-type": contentType,
          "content-disposition": `attachment; filename="session-${header.id}.${ending}"`,
        },
      });
    },
  });
  route(app, {
    method: "post",
    path: "/api/import",
    operationId: "importSession",
    summary:
      "Makes a session of the caller's from an exported log, with an id of its own. The log is taken as words: what it approved, ran or left waiting does not count here.",
    bodyType: JSONL,
    answers: { 201: { description: "The new session.", schema: sessionView } },
    async handle({ request, caller, bytes }) {
      checkContentType(request, JSONL, "application/x-ndjson", "application/json");
      const { maxSessionsPerUser: maxOpenPerUser, variablesBytesMax } = services.manager.config;
      const limits = { maxOpenPerUser, variablesBytesMax };
      // Always as words: no request makes a log this server's own.
      const options = {
        userId: caller.userId,
        id: uuidv7(),
        counts: caller.admin,
        entriesMax: app.limits.importEntriesMax,
        limits,
      };
      const head = await importSession(services.store, readLines(bytes()), options).catch(asRefusal);
      const headers = { location: `/api/sessions/${encodeSegment(head.header.id)}` };
      return answer(await readView(services, head.header.id, caller), { status: 201, headers });
    },
  });
}

/** What is wrong with a file is the request's fault; the same code for a stored session is the server's. */
function asRefusal(error: unknown): never {
  if (!(error instanceof SessionError) || !FILE_FAULTS.has(error.code)) throw error;
  throw new HttpError("INVALID_REQUEST", "The body is not the log of a session that this version can read.", {
    problems: [{ path: "body", message: error.message }],
  });
}

/** The pieces as they are asked for; what fails before the first one is a problem document and not half a file. */
async function streamOf(pieces: AsyncIterable<string>): Promise<ReadableStream<Uint8Array>> {
  const iterator = pieces[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let next = await iterator.next();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (next.done === true) return controller.close();
      controller.enqueue(encoder.encode(next.value));
      next = await iterator.next();
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
