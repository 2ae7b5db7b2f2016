import { SessionError } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { type CommandValues, textOption, type CommandOption } from "../command.ts";

const SECONDS_OF: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** An option's whole number, or undefined when it was not given. @throws {SessionError} `INVALID_OPTION` otherwise. */
export function countOption(values: CommandValues, name: string, min = 1): number | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const count = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= min) return count;
  throw new SessionError("INVALID_OPTION", `--${name} is ${show(text)}; give a whole number of ${min} or more.`);
}

/** An option's span of time in seconds, as in `30d`, or undefined. @throws {SessionError} `INVALID_OPTION` otherwise. */
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

/** The moment that an option's span of time lies back, or undefined when it was not given. */
export function momentOption(values: CommandValues, name: string): Date | undefined {
  const seconds = ageOption(values, name);
  if (seconds === undefined) return undefined;
  const moment = new Date(Date.now() - seconds * 1000);
  // Before the year 0 a date is written in another form, which no store could compare.
  if (moment.getUTCFullYear() >= 0) return moment;
  throw new SessionError("INVALID_OPTION", `--${name} reaches back further than dates do; give a shorter time.`);
}

/** How a model is named on the command line. */
export const MODEL_OPTION: CommandOption = {
  value: "PROVIDER/MODEL",
  what: "which model",
};
