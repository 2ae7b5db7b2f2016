import { createToken, hashToken } from "../../../http/api-token.ts";
import { ALL_RIGHTS, type CallerRights } from "../../../http/caller-init.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { checkName } from "../../../session/id.ts";
import { type Command, type CommandValues, textOption } from "../../command.ts";
import { ageOption } from "../../options/option-values.ts";
import { addToTokenFile } from "./token-file.ts";

const RIGHTS = Object.keys(ALL_RIGHTS) as readonly (keyof CallerRights)[];

/** Makes a token for the server. */
export const token: Command = {
  name: "token",
  summary: "Make a token that lets a user in at skein serve.",
  details:
    "The token is printed once, then the line that stands for it in the file of serve --token-file. The file holds hashes only.",
  arguments: [],
  options: {
    user: { value: "ID", default: "local", what: "whom it lets in" },
    admin: { what: "who has it may see and change the sessions of everyone" },
    may: {
      value: "RIGHTS",
      default: RIGHTS.join(","),
      what: "what who has it may do: answer questions of runs, start and steer runs, reach files of checkpoints; or none",
    },
    "expires-in": { value: "AGE", what: "how long it is good for, as in 90d (default: for ever)" },
    "token-file": { value: "FILE", what: "add the line to this file instead of printing it" },
  },
  examples: [
    { line: "skein token --user ann --expires-in 90d --token-file ./tokens", what: "let a user in for three months" },
    {
      line: "skein token --user eve --may none --token-file ./tokens",
      what: "let a user in who reads and writes only",
    },
    { line: "skein token --admin", what: "see the token and its line" },
  ],
  json: { token: "the token", line: "what stands for it in a token file: hash, userId, admin, may and expiresAt" },
  store: "none",
  async run(context) {
    const { values } = context;
    const [userId = "", file] = [textOption(values, "user"), textOption(values, "token-file")];
    checkName(userId, "a user");
    const seconds = ageOption(values, "expires-in", 1);
    const may = rightsOption(values);
    const made = createToken();
    const line = {
      hash: hashToken(made),
      userId,
      ...(values["admin"] === true && { admin: true }),
      ...(may !== undefined && { may }),
      ...(seconds !== undefined && { expiresAt: new Date(Date.now() + seconds * 1000).toISOString() }),
    };
    if (file !== undefined) await addToTokenFile(file, line);
    if (context.json) context.printJson({ token: made, line });
    else {
      context.print(made);
      if (file === undefined) context.print(JSON.stringify(line));
      else context.fail(`${file} knows it now; it is not shown again.`);
    }
    return 0;
  },
};

/** The rights that are given, or undefined for all. */
function rightsOption(values: CommandValues): CallerRights | undefined {
  const text = textOption(values, "may") ?? "";
  const given = text === "none" ? [] : text.split(",");
  if (given.some((name) => !(RIGHTS as readonly string[]).includes(name))) {
    throw new SessionError("INVALID_OPTION", `--may is ${show(text)}; give some of ${RIGHTS.join(",")}, or none.`);
  }
  if (RIGHTS.every((name) => given.includes(name))) return undefined;
  return { approve: given.includes("approve"), run: given.includes("run"), files: given.includes("files") };
}
