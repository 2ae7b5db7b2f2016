import { homedir } from "node:os";
import { join } from "node:path";

/** The directory that a variable of a program's names, else the one below the home directory where it keeps its files. */
export function programHome(variable: string): string | undefined;
export function programHome(variable: string, ...below: string[]): string;
export function programHome(variable: string, ...below: string[]): string | undefined {
  const named = process.env[variable];
  if (named !== undefined && named !== "") return named;
  return below.length === 0 ? undefined : join(homedir(), ...below);
}
