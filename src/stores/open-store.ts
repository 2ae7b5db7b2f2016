import { resolve } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import { hideFromSandboxes } from "../session/sandbox/sandbox-hidden-paths.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "./memory/index.ts";

/** What every kind of store can be told; each takes what concerns it. */
export interface OpenStoreOptions {
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
}

/**
 * Opens the store that a URL names: `memory:`, `jsonl:./directory`, `sqlite:./file.db`, `postgres://…` or `redis://…`.
 *
 * @example
 * await using store = await openStore("sqlite:./sessions.db");
 *
 * @throws {SessionError} `INVALID_OPTION` for any other URL.
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<SessionStore> {
  const [, kind, address] = /^([a-z][a-z+]*):(.*)$/s.exec(typeof url === "string" ? url : "") ?? [];
  switch (kind) {
    case "memory":
      if (address !== "")
        throw new SessionError(
          "INVALID_OPTION",
          `${show(url)} names an address, and memory has none; use memory: or another store.`,
        );
      return openMemoryStore();
    case "jsonl":
      hideFromSandboxes(resolve(pathOf(url, address)));
      return (await import("./jsonl/index.ts")).openJsonlStore({ ...options, directory: pathOf(url, address) });
    case "sqlite":
      return (await import("./sqlite/index.ts")).openSqliteStore({ ...options, path: pathOf(url, address) });
    case "postgres":
    case "postgresql":
      return (await import("./postgres/index.ts")).openPostgresStore({ url });
    case "redis":
    case "rediss":
      return (await import("./redis/index.ts")).openRedisStore({ url });
    default:
      throw new SessionError(
        "INVALID_OPTION",
        `${show(withoutLogin(url))} names no store; use memory:, jsonl:./directory, sqlite:./file.db, postgres://host/database or redis://host:6379.`,
      );
  }
}

/** A mistyped URL may still hold a password. */
function withoutLogin(url: unknown): unknown {
  return typeof url === "string" ? url.replace(/\/\/[^/]*@/, "//…@") : url;
}

function pathOf(url: string, address: string | undefined): string {
  // `sqlite:///srv/x.db` and `sqlite:/srv/x.db` mean the same file; `sqlite://x` would name a host, which no file has.
  const path = address?.startsWith("///") ? address.slice(2) : address;
  if (path === undefined || path === "" || path.startsWith("//") || path.includes("\0")) {
    throw new SessionError(
      "INVALID_OPTION",
      `${show(url)} names no file; write the path after the colon, as in sqlite:./file.db.`,
    );
  }
  return path;
}
