import { BLOB_OPTIONS, type BlobOptions } from "../session/blob.ts";
import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { resolve } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import { hideFromSandboxes } from "../session/sandbox/sandbox-hidden-paths.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "./memory/index.ts";
import { pathOf } from "./store-path.ts";

/** Options of `openStore`. Each kind of store uses those that apply to it. */
export interface OpenStoreOptions extends BlobOptions {
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** Also create missing parents of the named file or directory. Without it, a missing parent is an error. */
  readonly create?: boolean;
}

/**
 * Opens the store that a URL names: `memory:`, `jsonl:./directory`, `sqlite:./file.db`, `postgres://…` or `redis://…`.
 * A leading `~/` in a path is the home of the user.
 *
 * @example
 * await using store = await openStore("sqlite:./sessions.db");
 *
 * @throws {SessionError} `INVALID_OPTION` for any other URL, and for a file in a directory that is missing.
 */
export async function openStore(url: string, options: OpenStoreOptions = {}): Promise<SessionStore> {
  const known: KeysOf<OpenStoreOptions> = { durability: true, create: true, ...BLOB_OPTIONS };
  checkOptionsOf(options, known, "openStore");
  const { durability: _durability, create: _create, ...blobOptions } = options;
  const [, kind, address] = /^([a-z][a-z+]*):(.*)$/s.exec(typeof url === "string" ? url : "") ?? [];
  switch (kind) {
    case "memory":
      if (address !== "")
        throw new SessionError(
          "INVALID_OPTION",
          `${show(url)} has text after memory:, which has no address; use memory: or another store.`,
        );
      return openMemoryStore(blobOptions);
    case "jsonl":
      hideFromSandboxes(resolve(pathOf(url, address)));
      return (await import("./jsonl/index.ts")).openJsonlStore({ ...options, directory: pathOf(url, address) });
    case "sqlite":
      return (await import("./sqlite/index.ts")).openSqliteStore({ ...options, path: pathOf(url, address) });
    case "postgres":
    case "postgresql":
      return (await import("./postgres/index.ts")).openPostgresStore({ url, ...blobOptions });
    case "redis":
    case "rediss":
      return (await import("./redis/index.ts")).openRedisStore({ url, ...blobOptions });
    default:
      throw new SessionError(
        "INVALID_OPTION",
        `${show(withoutLogin(url))} names no store; use memory:, jsonl:./directory, sqlite:./file.db, postgres://host/database or redis://host:6379.`,
      );
  }
}

/** Removes the login from a URL for an error message: even an invalid URL may contain a password. */
function withoutLogin(url: unknown): unknown {
  return typeof url === "string" ? url.replace(/\/\/[^/]*@/, "//…@") : url;
}
