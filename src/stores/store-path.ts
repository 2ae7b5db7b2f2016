import { SessionError, show } from "../session/errors.ts";
import { expandHome } from "./expand-home.ts";

/**
 * The path of the file or directory in a store's URL, with a leading `~/` expanded; null for a store without one.
 *
 * @throws {SessionError} `INVALID_OPTION` if the path is missing.
 */
export function storePathOf(url: string): string | null {
  const [, kind, address] = /^([a-z][a-z+]*):(.*)$/s.exec(url) ?? [];
  if (kind !== "jsonl" && kind !== "sqlite") return null;
  const path = pathOf(url, address);
  return kind === "sqlite" && path === ":memory:" ? null : path;
}

/** The path in the address of a store's URL. @throws {SessionError} `INVALID_OPTION` if it is missing. */
export function pathOf(url: string, address: string | undefined): string {
  // `sqlite:///srv/x.db` and `sqlite:/srv/x.db` are the same file; `sqlite://x` would name a host, so it is refused.
  const path = address?.startsWith("///") ? address.slice(2) : address;
  if (path === undefined || path === "" || path.startsWith("//") || path.includes("\0")) {
    throw new SessionError(
      "INVALID_OPTION",
      `${show(url)} names no file; write the path after the colon, as in sqlite:./file.db.`,
    );
  }
  return expandHome(path);
}
