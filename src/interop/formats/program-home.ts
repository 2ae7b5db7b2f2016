import { homedir } from "node:os";
import { join } from "node:path";

/** The directory named by an environment variable of the program, else the given path below the home directory. */
export function programHome(variable: string): string | undefined;
export function programHome(variable: string, ...below: string[]): string;
export function programHome(variable: string, ...below: string[]): string | undefined {
  const named = process.env[variable];
  if (named !== undefined && named !== "") return named;
  return below.length === 0 ? undefined : join(homedir(), ...below);
}
