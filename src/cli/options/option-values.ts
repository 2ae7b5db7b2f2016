import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type CommandValues, textOption, type CommandOption } from "../command.ts";

const SECONDS_OF: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/**
 * The whole number of an option; undefined if it was not given. @throws {SessionError} `INVALID_OPTION` for anything
 * else.
 */
export function countOption(values: CommandValues, name: string, min = 1): number | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const count = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= min) return count;
  throw new SessionError("INVALID_OPTION", `--${name} is ${show(text)}; give a whole number of ${min} or more.`);
}

/**
 * The duration of an option, as in `30d`, in seconds; undefined if it was not given. @throws {SessionError}
 * `INVALID_OPTION` for anything else.
 */
export function ageOption(values: CommandValues, name: string, min = 0): number | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const [, count, unit] = /^(\d{1,9})([smhdw])$/.exec(text) ?? [];
  const seconds = count === undefined || unit === undefined ? Number.NaN : Number(count) * (SECONDS_OF[unit] as number);
  if (seconds >= min) return seconds;
  throw new SessionError(
    "INVALID_OPTION",
    `--${name} is ${show(text)}; give a number ${min > 0 ? "above 0 " : ""}and a unit (s, m, h, d, w), as in 30d.`,
  );
}

/** The time before now by an option's duration; undefined if it was not given. */
export function momentOption(values: CommandValues, name: string): Date | undefined {
  const seconds = ageOption(values, name);
  if (seconds === undefined) return undefined;
  const moment = new Date(Date.now() - seconds * 1000);
  // Dates before the year 0 have another ISO format, which stores could not compare.
  if (moment.getUTCFullYear() >= 0) return moment;
  throw new SessionError("INVALID_OPTION", `--${name} is too long a time; give a shorter one.`);
}

/** The option that chooses a model. */
export const MODEL_OPTION: CommandOption = {
  value: "PROVIDER/MODEL",
  what: "the model",
};
