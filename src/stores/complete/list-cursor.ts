import { SessionError, show } from "../../session/errors.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { isSessionId } from "../../session/id.ts";
import type { ListPosition } from "../../session/store-driver.ts";

const CURSOR_CHARACTERS_MAX = 512;

/** The text that stands for a position in a listing. */
export function encodeCursor({ modifiedAt, id }: ListPosition): string {
  return Buffer.from(JSON.stringify({ modifiedAt, id })).toString("base64url");
}

/** @throws {SessionError} `INVALID_QUERY` unless the text came from `encodeCursor`. */
export function decodeCursor(cursor: string): ListPosition {
  const position = parse(cursor);
  // Only the very text that was handed out counts, so that a cursor cannot be half right.
  if (position === null || encodeCursor(position) !== cursor) {
    throw new SessionError(
      "INVALID_QUERY",
      `${show(cursor)} is not a cursor of this store; pass the "next" of a page as it is.`,
    );
  }
  return position;
}

function parse(cursor: unknown): ListPosition | null {
  if (typeof cursor !== "string" || cursor.length > CURSOR_CHARACTERS_MAX) return null;
  try {
    const { modifiedAt, id } = JSON.parse(Buffer.from(cursor, "base64url").toString()) as Partial<
      Record<string, unknown>
    >;
    return isTimestamp(modifiedAt) && isSessionId(id) ? { modifiedAt, id } : null;
  } catch {
    return null;
  }
}
