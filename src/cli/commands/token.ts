import { createToken, hashToken } from "../../http/api-token.ts";
import { checkName } from "../../session/id.ts";
import { type Command, textOption } from "../command.ts";
import { ageOption } from "../option-values.ts";
import { addToTokenFile } from "../token-file.ts";

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
    "expires-in": { value: "AGE", what: "how long it is good for, as in 90d (default: for ever)" },
    "token-file": { value: "FILE", what: "add the line to this file instead of printing it" },
  },
  examples: [
    { line: "skein token --user ann --expires-in 90d --token-file ./tokens", what: "let a user in for three months" },
    { line: "skein token --admin", what: "see the token and its line" },
  ],
  json: { token: "the token", line: "what stands for it in a token file: hash, userId, admin and expiresAt" },
  store: "none",
  async run(context) {
    const { values } = context;
    const [userId = "", file] = [textOption(values, "user"), textOption(values, "token-file")];
    checkName(userId, "a user");
    const seconds = ageOption(values, "expires-in", 1);
    const made = createToken();
    const line = {
      hash: hashToken(made),
      userId,
      ...(values["admin"] === true && { admin: true }),
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
