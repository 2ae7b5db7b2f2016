import { z } from "zod";
import { blobHash, blobName, blobNotFound, type BlobRef, type StoredBlob } from "../../../session/blob.ts";
import type { Content } from "../../../session/message.ts";
import type { SessionStore } from "../../../session/store.ts";
import { encodeSegment } from "../../path-segment.ts";
import { HttpError } from "../http-error.ts";
import { checkContentType } from "../read-body.ts";
import { answer, answerStream, route, type RouteCall, type ServerApp } from "../route.ts";
import { named, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { visibleHead } from "./session-access.ts";

const BYTES = "application/octet-stream";
const UPLOADS_PER_USER = 4;
/** The types that a browser may show: raster images and PDF. Others, such as SVG and HTML, could contain scripts. */
const SHOWN_TYPES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/avif",
  "image/bmp",
  "application/pdf",
]);
/** A blob never changes, so a browser need not ask for it again. */
const CACHED = "private, max-age=31536000, immutable";
const SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const blobRef = named<BlobRef>("BlobRef", z.object({ blob: z.string(), bytes: z.number() }));
const blobQuery = z.strictObject({ type: z.string().max(200).optional(), name: z.string().max(500).optional() });

type BlobCall = RouteCall<z.infer<typeof blobQuery>, unknown>;

/** Adds the routes that upload and download the images and files of sessions. */
export function mountBlobs(app: ServerApp, services: ServerServices): void {
  const uploads = new Uploads();
  route(app, {
    method: "post",
    path: "/api/sessions/:id/blobs",
    operationId: "uploadBlob",
    summary:
      "Stores the bytes of an image or a file, and returns the reference that a message of the session then has in place of data.",
    bodyType: BYTES,
    streamed: true,
    // Blobs have a limit of their own for each user.
    frees: true,
    answers: { 201: { description: "The reference, for a part of a message.", schema: blobRef } },
    async handle({ param, request, caller, bytes }) {
      checkContentType(request, BYTES);
      const { header } = await visibleHead(services, param("id"), caller);
      using _slot = uploads.enter(caller.userId);
      const ref = await services.store.putBlob(header.id, bytes());
      const location = `/api/sessions/${encodeSegment(header.id)}/blobs/${blobHash(ref.blob) ?? ""}`;
      return answer(ref, { status: 201, headers: { location } });
    },
  });
  mountDownload(app, services, "/api/sessions/:id/blobs/:hash", "readBlob");
  mountDownload(app, services, "/api/chat/:id/blobs/:hash", "readChatBlob");
  mountDownload(app, services, "/agui/:id/blobs/:hash", "readAgUiBlob");
}

/** Limits the concurrent uploads of each user, because each is spooled to the disk. */
class Uploads {
  readonly #byUser = new Map<string, number>();

  /** @throws {HttpError} `TOO_MANY_BODIES`. */
  enter(userId: string): Disposable {
    const count = this.#byUser.get(userId) ?? 0;
    if (count >= UPLOADS_PER_USER) {
      throw new HttpError(
        "TOO_MANY_BODIES",
        `A user uploads at most ${UPLOADS_PER_USER} images or files at a time; wait for the other answers.`,
        { headers: { "retry-after": "1" } },
      );
    }
    this.#byUser.set(userId, count + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#byUser.get(userId) ?? 1) - 1;
        if (left === 0) this.#byUser.delete(userId);
        else this.#byUser.set(userId, left);
      },
    };
  }
}

function mountDownload(app: ServerApp, services: ServerServices, path: `/${string}`, operationId: string): void {
  route(app, {
    method: "get",
    path,
    operationId,
    summary:
      "The bytes of an image or a file, whole or a range of them; `type` is its media type and `name` the name for saving it.",
    query: blobQuery,
    problems: [416],
    answers: {
      200: { description: "The bytes.", contentType: BYTES },
      206: { description: "The requested range.", contentType: BYTES },
      304: { description: "The client has the bytes already." },
    },
    handle: (call) => sendBlob(services, call),
  });
}

async function sendBlob(
  services: ServerServices,
  { param, query, request, caller, work }: BlobCall,
): Promise<Response> {
  const { header } = await visibleHead(services, param("id"), caller);
  const blob = blobName(param("hash"));
  const found = blobHash(blob) === null ? null : await services.store.blob(header.id, blob);
  if (found === null) throw blobNotFound(header.id, blob);
  const etag = `"${param("hash")}"`;
  const headers = { ...headersOf(query), etag, "accept-ranges": "bytes" };
  if (isKnown(request, etag)) return new Response(null, { status: 304, headers });
  const range = rangeOf(request, found, etag);
  const { start, end } = range ?? { start: 0, end: found.size };
  const length = { "content-length": String(end - start) };
  if (request.method === "HEAD") return new Response(null, { headers: { ...headers, ...length } });
  const response = await answerStream(work, found.stream({ start, end }), { ...headers, ...length });
  if (range === null) return response;
  response.headers.set("content-range", `bytes ${start}-${end - 1}/${found.size}`);
  return new Response(response.body, { status: 206, headers: response.headers });
}

/** The headers with which a browser never runs the bytes as a page, and shows only images and PDF. */
function headersOf({ type = "", name }: z.infer<typeof blobQuery>): Record<string, string> {
  const isShown = SHOWN_TYPES.has(type);
  const file = name === undefined ? "" : `; filename*=UTF-8''${encodeURIComponent(name)}`;
  return {
    "content-type": isShown ? type : BYTES,
    "content-disposition": `${isShown ? "inline" : "attachment"}${file}`,
    "content-security-policy": SANDBOX,
    "cache-control": CACHED,
  };
}

function isKnown({ headers }: Request, etag: string): boolean {
  const known = (headers.get("if-none-match") ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return known.includes(etag) || known.includes("*");
}

/**
 * The requested range of bytes, `end` excluded; null for all of them. A header with several ranges, or of another unit, is
 * ignored, as HTTP allows.
 *
 * @throws {HttpError} `RANGE_NOT_SATISFIABLE` for a range outside of the bytes.
 */
function rangeOf({ headers }: Request, { size }: StoredBlob, etag: string): { start: number; end: number } | null {
  const ifRange = headers.get("if-range");
  const [, from = "", to = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(headers.get("range") ?? "") ?? [];
  if ((from === "" && to === "") || (ifRange !== null && ifRange !== etag)) return null;
  const start = from === "" ? Math.max(0, size - Number(to)) : Number(from);
  const end = from === "" || to === "" ? size : Math.min(size, Number(to) + 1);
  if (start < end) return { start, end };
  throw new HttpError("RANGE_NOT_SATISFIABLE", `The blob has ${size} bytes; ask for a range within them.`, {
    headers: { "content-range": `bytes */${size}` },
  });
}

/** The path of a blob below a mounted group of routes, for the messages of a front end. */
export function blobPath(base: string, sessionId: string, blob: string, mediaType: string): string {
  const hash = blobHash(blob) ?? "";
  return `${base}/${encodeSegment(sessionId)}/blobs/${hash}?type=${encodeURIComponent(mediaType)}`;
}

/** The reference in a URL of `blobPath`; null for any other URL. */
export function blobInUrl(url: string): string | null {
  const hash = /\/blobs\/([0-9a-f]{64})(?:[?#]|$)/.exec(url)?.[1];
  return hash === undefined ? null : blobName(hash);
}

/**
 * Content whose references to blobs have their number of bytes, which a front end does not send.
 *
 * @throws {SessionError} `BLOB_NOT_FOUND` for a blob that the session cannot see.
 */
export async function withBlobSizes(store: SessionStore, sessionId: string, content: Content): Promise<Content> {
  if (typeof content === "string") return content;
  return Promise.all(
    content.map(async (part) => {
      if (!("blob" in part)) return part;
      const found = await store.blob(sessionId, part.blob);
      if (found === null) throw blobNotFound(sessionId, part.blob);
      return { ...part, bytes: found.size };
    }),
  );
}

/** A file of a front end's message: a data URL with its data, or a URL of `blobPath` with its reference, still without size. */
export function fileSource(
  url: string,
  at: string,
): { readonly data: string } | { readonly blob: string; readonly bytes: number } {
  const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
  if (data !== undefined) return { data };
  const blob = blobInUrl(url);
  return blob === null
    ? refuse(at, "A file comes as a data URL in base64, or as the URL of a blob of this session.")
    : { blob, bytes: 0 };
}
