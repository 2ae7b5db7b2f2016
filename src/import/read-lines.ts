import { checkArgument, isStream } from "../session/check-arguments.ts";
import { TextDecoder } from "node:util";
import { SessionError } from "../session/errors.ts";
import { LINE_BYTES_MAX } from "../stores/jsonl/log-line.ts";

/**
 * Splits a stream of bytes into lines, without their newlines.
 *
 * @throws {SessionError} `DAMAGED` if the bytes are not UTF-8, `TOO_LARGE` for a line longer than a session file may hold.
 */
export async function* readLines(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<string, void, undefined> {
  checkArgument(isStream(pieces), pieces, "readLines", "the bytes of a file, in pieces");
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let open: string[] = [];
  let length = 0;
  for await (const piece of pieces) {
    checkArgument(piece instanceof Uint8Array, piece, "readLines", "pieces that are bytes");
    const lines = decode(decoder, piece).split("\n");
    const last = lines.pop() as string;
    for (const line of lines) {
      yield `${open.join("")}${line}`;
      open = [];
      length = 0;
    }
    open.push(last);
    length += last.length;
    if (length > LINE_BYTES_MAX)
      throw new SessionError("TOO_LARGE", `The file has a line of more than ${LINE_BYTES_MAX} characters.`);
  }
  const rest = `${open.join("")}${decode(decoder)}`;
  if (rest !== "") yield rest;
}

function decode(decoder: TextDecoder, piece?: Uint8Array): string {
  try {
    return decoder.decode(piece, { stream: piece !== undefined });
  } catch (cause) {
    throw new SessionError("DAMAGED", "The file is not UTF-8, so it cannot be read as a session.", { cause });
  }
}
