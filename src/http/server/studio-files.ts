import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { Readable } from "node:stream";
import { SessionError, show } from "../../session/errors.ts";

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".woff2": "font/woff2",
  ".wasm": "application/wasm",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
};

const PAGE_POLICY =
  "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Skein</title></head>
<body>
<h1>Skein</h1>
<p>This server keeps agent sessions. Its routes are under <code>/api/</code>;
<a href="/openapi.json">openapi.json</a> lists them.</p>
</body>
</html>
`;

/** Serves the studio: the files of a directory, or one small page if there is none. */
export class StudioFiles {
  readonly #directory: string | null;

  private constructor(directory: string | null) {
    this.#directory = directory;
  }

  /** @throws {SessionError} `INVALID_OPTION` for a directory without an index.html. */
  static async open(directory: string | null): Promise<StudioFiles> {
    if (directory === null) return new StudioFiles(null);
    try {
      const root = await realpath(directory);
      await stat(join(root, "index.html"));
      return new StudioFiles(root);
    } catch (cause) {
      throw new SessionError("INVALID_OPTION", `The studio directory ${show(directory)} has no index.html.`, { cause });
    }
  }

  /** Reads the file at a path; null if there is none, or if it is outside of the directory. */
  async find(path: string): Promise<Response | null> {
    if (this.#directory === null) return path === "/" ? pageOf(PAGE) : null;
    const name = path === "/" ? "index.html" : nameOf(path);
    // A path without a file extension is a client-side route of the studio.
    return name === null
      ? null
      : ((await this.#read(name)) ?? (extname(name) === "" ? this.#read("index.html") : null));
  }

  async #read(name: string): Promise<Response | null> {
    const root = this.#directory as string;
    try {
      const file = await realpath(join(root, name));
      const { size } = await stat(file);
      if (!file.startsWith(root + sep) || !(await stat(file)).isFile()) return null;
      return new Response(Readable.toWeb(createReadStream(file)) as ReadableStream, {
        headers: {
          "content-type": TYPES[extname(file)] ?? "application/octet-stream",
          "content-length": String(size),
          "content-security-policy": PAGE_POLICY,
          "cache-control": "no-cache",
        },
      });
    } catch {
      return null;
    }
  }
}

function pageOf(html: string): Response {
  return new Response(html, {
    headers: { "content-type": "text/html; charset=utf-8", "content-security-policy": PAGE_POLICY },
  });
}

/** Turns a URL path into a file name; null if it could lead out of the directory. */
function nameOf(path: string): string | null {
  try {
    const segments = path.split("/").slice(1).map(decodeURIComponent);
    const plain = segments.every((segment) => !/^\.|[\\/\0]/.test(segment) && segment !== "");
    return plain ? segments.join("/") : null;
  } catch {
    return null;
  }
}
