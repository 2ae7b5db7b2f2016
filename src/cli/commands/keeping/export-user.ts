import { SessionError } from "../../../index.ts";
import { type Command, textOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { writeNewFile } from "./write-new-file.ts";

/** Writes what is held about a user to a file. */
export const exportUser: Command = {
  name: "export-user",
  summary: "Write what is held about a user as one archive (tar), the trash included.",
  details:
    "Each session is a file that skein import takes; about.json says which is which. What they said in sessions of others is below elsewhere/.",
  arguments: [{ name: "user", what: "the id of the user" }],
  options: {
    output: { value: "FILE", what: "the file to write" },
    force: { what: "replace the file if it is there" },
  },
  examples: [{ line: "skein export-user ada --output ada.tar", what: "hand someone what is theirs" }],
  json: { user: "the id of the user", output: "the file", bytes: "how large it is" },
  store: "existing",
  async run(context) {
    const { values } = context;
    const user = context.positionals[0] as string;
    const output = textOption(values, "output");
    if (output === undefined || output === "")
      throw new SessionError("INVALID_OPTION", "export-user needs the name of a file with --output.");
    await using store = await context.openStore();
    const bytes = await writeNewFile(output, openManager(store).exportUser(user), values["force"] === true);
    if (context.json) context.printJson({ user, output, bytes });
    else context.print(`${output}: ${bytes} bytes.`);
    return 0;
  },
};
