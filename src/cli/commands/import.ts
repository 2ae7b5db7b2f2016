import { counted } from "../counted.ts";
import { createReadStream } from "node:fs";
import { importSession, readLines } from "../../export/index.ts";
import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type Command, textOption } from "../command.ts";

/** Takes in a session from a file. */
export const importCommand: Command = {
  name: "import",
  summary: "Take in a session from a JSONL export or a session's file; all of it, or nothing.",
  arguments: [{ name: "file", what: "the file, or - for the standard input" }],
  options: {
    user: { value: "ID", what: "whose session it becomes (default: as in the file)" },
    id: { value: "ID", what: "its id in this store (default: as in the file)" },
  },
  examples: [
    { line: "skein import talk.jsonl", what: "a session that was exported elsewhere" },
    { line: "skein import talk.jsonl --id talk-2", what: "beside the session that it was exported from" },
  ],
  json: {
    session: "the id of the session",
    version: "how many entries it has",
  },
  store: "made",
  async run(context) {
    const file = context.positionals[0] as string;
    const [userId, id] = [textOption(context.values, "user"), textOption(context.values, "id")];
    await using store = await context.openStore();
    const { header, version } = await importSession(store, readLines(bytesOf(file, context.signal)), {
      ...(userId === undefined ? {} : { userId }),
      ...(id === undefined ? {} : { id }),
    });
    if (context.json) context.printJson({ session: header.id, version });
    else context.print(`Session ${header.id} has been imported with ${counted(version, "entry", "entries")}.`);
    return 0;
  },
};

async function* bytesOf(file: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const piece of file === "-" ? process.stdin : createReadStream(file)) {
      signal.throwIfAborted();
      yield piece as Uint8Array;
    }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (cause instanceof SessionError || code === undefined) throw cause;
    throw new SessionError("INVALID_OPTION", `${show(file)} cannot be read (${code}); check the path.`, { cause });
  }
}
