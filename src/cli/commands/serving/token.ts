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
  summary: "Make a token for a user of skein serve.",
  details:
    "The token is printed only once, followed by its line for the file of skein serve --token-file. The file holds only hashes of tokens.",
  arguments: [],
  options: {
    user: { value: "ID", default: "local", what: "the user of the token" },
    admin: { what: "the user may see and change the sessions of all users" },
    may: {
      value: "RIGHTS",
      default: RIGHTS.join(","),
      what: "the rights of the user: approve calls, start and steer runs (run), access the files of checkpoints (files); or none",
    },
    "expires-in": { value: "AGE", what: "how long the token is valid, as in 90d (default: no expiry)" },
    "token-file": { value: "FILE", what: "add the line to this file instead of printing it" },
  },
  examples: [
    {
      line: "skein token --user ann --expires-in 90d --token-file ./tokens",
      what: "a token that is valid for three months",
    },
    {
      line: "skein token --user eve --may none --token-file ./tokens",
      what: "a token that may only read and write sessions",
    },
    { line: "skein token --admin", what: "print a token and its line" },
  ],
  json: { token: "the token", line: "its line of a token file: hash, userId, admin, may and expiresAt" },
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
      else context.fail(`The token was added to ${file}; it is not printed again.`);
    }
    return 0;
  },
};

/** The rights of `--may`; undefined for all. */
function rightsOption(values: CommandValues): CallerRights | undefined {
  const text = textOption(values, "may") ?? "";
  const given = text === "none" ? [] : text.split(",");
  if (given.some((name) => !(RIGHTS as readonly string[]).includes(name))) {
    throw new SessionError(
      "INVALID_OPTION",
      `--may is ${show(text)}; give one or more of ${RIGHTS.join(",")}, or none.`,
    );
  }
  if (RIGHTS.every((name) => given.includes(name))) return undefined;
  return { approve: given.includes("approve"), run: given.includes("run"), files: given.includes("files") };
}
