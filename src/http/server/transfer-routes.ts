import { z } from "zod";
import { exportSession, importSession } from "../../export/index.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { SessionCapacityError, SessionError } from "../../session/errors.ts";
import { encodeSegment } from "../path-segment.ts";
import type { ExportFormat } from "../wire.ts";
import { HttpError } from "./http-error.ts";
import { checkContentType, streamBody } from "./read-body.ts";
import { answer, route, type ServerApp } from "./route.ts";
import { id, queryFlag } from "./schema.ts";
import type { Caller, ServerServices } from "./server-services.ts";
import { readView, visibleHead } from "./session-access.ts";
import { sessionView } from "./wire-schemas.ts";

const JSONL = "application/jsonl";
const TYPES: Readonly<Record<ExportFormat, { readonly contentType: string; readonly ending: string }>> = {
  jsonl: { contentType: JSONL, ending: "jsonl" },
  markdown: { contentType: "text/markdown; charset=utf-8", ending: "md" },
  html: { contentType: "text/html; charset=utf-8", ending: "html" },
};

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
    summary: "Makes a session of the caller's from an exported log, with an id of its own.",
    bodyType: JSONL,
    answers: { 201: { description: "The new session.", schema: sessionView } },
    async handle({ request, caller }) {
      checkContentType(request, JSONL, "application/x-ndjson", "application/json");
      await checkRoom(services, caller);
      const lines = linesOf(streamBody(request, app.limits.bodyBytesMax));
      const head = await importSession(services.store, lines, { userId: caller.userId, id: uuidv7() }).catch(asRefusal);
      const headers = { location: `/api/sessions/${encodeSegment(head.header.id)}` };
      return answer(await readView(services, head.header.id, caller), { status: 201, headers });
    },
  });
}

/** What is wrong with a file is the request's fault; the same code for a stored session is the server's. */
function asRefusal(error: unknown): never {
  const codes = ["DAMAGED", "NOT_A_SESSION", "UNSUPPORTED_VERSION"];
  if (!(error instanceof SessionError) || !codes.includes(error.code)) throw error;
  throw new HttpError("INVALID_REQUEST", "The body is not the log of a session that this version can read.", {
    problems: [{ path: "body", message: error.message }],
  });
}

async function checkRoom({ manager, store }: ServerServices, { userId }: Caller): Promise<void> {
  const { maxSessionsPerUser } = manager.config;
  if ((await store.count({ userId, status: ["active", "suspended"] })) < maxSessionsPerUser) return;
  throw new SessionCapacityError("open sessions of a user", maxSessionsPerUser);
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

/** The lines of a text that comes in pieces. */
async function* linesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  const decode = (chunk?: Uint8Array): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw new HttpError("INVALID_REQUEST", "The body is not text in UTF-8.");
    }
  };
  for await (const chunk of bytes) {
    const lines = (rest + decode(chunk)).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  rest += decode();
  if (rest !== "") yield rest;
}
