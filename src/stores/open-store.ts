import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { resolve } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import { hideFromSandboxes } from "../session/sandbox/sandbox-hidden-paths.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "./memory/index.ts";
import { expandHome } from "./named-path.ts";

/** What every kind of store can be told; each takes what concerns it. */
export interface OpenStoreOptions {
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** Makes the directories above a file or directory that is named, too; without it, a missing one is refused. */
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
  checkOptionsOf(options, { durability: true, create: true } satisfies KeysOf<OpenStoreOptions>, "openStore");
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

/**
 * The file or directory that a URL names, as it is written there but for a leading `~/`; null for a store that is kept in none.
 *
 * @throws {SessionError} `INVALID_OPTION` where a path is missing.
 */
export function storePathOf(url: string): string | null {
  const [, kind, address] = /^([a-z][a-z+]*):(.*)$/s.exec(url) ?? [];
  if (kind !== "jsonl" && kind !== "sqlite") return null;
  const path = pathOf(url, address);
  return kind === "sqlite" && path === ":memory:" ? null : path;
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
  return expandHome(path);
}
