import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openPlace } from "./program-place.mjs";
import { recordSession } from "./record.mjs";
import { openStandIn } from "./stand-in.mjs";

const golden = fileURLToPath(new URL("../formats/golden/", import.meta.url));

/**
 * @param {import("./programs.mjs").Program} program
 * @param {readonly string[]} command
 * @param {{ record: boolean }} options
 */
export async function tryProgram(program, command, { record }) {
  const standIn = await openStandIn();
  const place = openPlace(program, command, standIn.url);
  const fixtures = join(golden, program.format, program.version);
  try {
    await place.run(program.begin("Look into notes.txt and tell me where the kettle is."));
    const { id } = await place.newest();
    await place.run(program.resume(id, "Look into both files at once."));
    await place.run(program.resume(id, "Let a helper look for the kettle."));
    const said = await place.newest();
    if (record)
      recordSession(
        said.path,
        join(fixtures, `conversation${said.path.endsWith(".json") ? ".json" : ".jsonl"}`),
        place,
      );
    if (record && program.compact !== undefined) {
      const { args, talk } = program.compact(id);
      await place.run(args, talk);
      await place.run(program.resume(id, "Remember the word marmalade."));
      recordSession((await place.newest()).path, join(fixtures, "compacted.jsonl"), place);
    }
  } finally {
    place.remove();
    await standIn.close();
  }
}
