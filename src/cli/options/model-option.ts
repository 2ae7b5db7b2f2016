import type { CommandOption } from "../command.ts";

/** How a model is named on the command line. */
export const MODEL_OPTION: CommandOption = {
  value: "PROVIDER/MODEL",
  default: "offline",
  what: "which model",
};
