/** The kinds of servers that a store of Skein uses. */
export type ServerKind = "postgres" | "redis";

const VARIABLES: Readonly<Record<ServerKind, string>> = {
  postgres: "SKEIN_TEST_POSTGRES_URL",
  redis: "SKEIN_TEST_REDIS_URL",
};

/** The URL of a server, or why there is none. */
export function serverOf(kind: ServerKind): { readonly url: string } | { readonly problem: string } {
  const url = process.env[VARIABLES[kind]];
  if (url !== undefined && url !== "") return { url };
  return {
    problem: process.env[`${VARIABLES[kind]}_PROBLEM`] ?? "start the benchmark with npm run bench, which brings one",
  };
}
