import { SessionError, show } from "./errors.ts";
import { CWD_CHARACTERS_MAX, ID_CHARACTERS_MAX } from "./limits.ts";

const SESSION_ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;

/** Whether a text is a valid session id. */
export function isSessionId(id: unknown): id is string {
  return typeof id === "string" && SESSION_ID.test(id);
}

/** @throws {SessionError} `INVALID_ID` unless the text is a valid session id: safe in a path, a query and a key. */
export function checkSessionId(id: unknown): asserts id is string {
  if (isSessionId(id)) return;
  throw new SessionError(
    "INVALID_ID",
    `${show(id)} is not a session id: use 1 to 128 letters, digits, dots, dashes and underscores, with a letter or digit at both ends.`,
  );
}

/** Whether a text is a valid id of an entry, a user, a run or a checkpoint. */
export function isName(id: unknown): id is string {
  return typeof id === "string" && id.length > 0 && id.length <= ID_CHARACTERS_MAX && isClean(id);
}

/** @throws {SessionError} `INVALID_ID` unless the text is a valid id of an entry, a user, a run or a checkpoint. */
export function checkName(id: unknown, what: string): asserts id is string {
  if (isName(id)) return;
  throw new SessionError(
    "INVALID_ID",
    `${show(id)} is not ${what} id: use 1 to ${ID_CHARACTERS_MAX} characters, none of them a control character.`,
  );
}

/** Whether a text is a valid working directory. */
export function isCwd(cwd: unknown): cwd is string {
  return typeof cwd === "string" && cwd.length > 0 && cwd.length <= CWD_CHARACTERS_MAX && isClean(cwd);
}

/** @throws {SessionError} `INVALID_HEADER` unless the text may be a working directory. */
export function checkCwd(cwd: unknown): asserts cwd is string {
  if (isCwd(cwd)) return;
  throw new SessionError(
    "INVALID_HEADER",
    `${show(cwd)} is not a working directory: use a path without control characters.`,
  );
}

function isClean(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit === 0x7f) return false;
    if (unit < 0xd800 || unit > 0xdfff) continue;
    // A lone surrogate does not survive UTF-8, so two different ids could become equal.
    const next = text.charCodeAt(i + 1);
    if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return false;
    i++;
  }
  return true;
}
