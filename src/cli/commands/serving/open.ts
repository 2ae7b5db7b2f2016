import { listLocalServers } from "../../../http/local-servers.ts";
import { addressWithToken } from "./address-with-token.ts";
import type { Command } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";

/** Finds the servers that run for this user. */
export const open: Command = {
  name: "open",
  summary: "Print the address, with its token, of each server that runs here for you.",
  details:
    "It finds those that skein serve and npm start made a token for, in files under SKEIN_HOME (or ~/.skein) that only you can read. The latest comes first; open its address in a browser. Exits with 1 when there is none.",
  arguments: [],
  options: { port: { value: "N", what: "only the one on this port" } },
  examples: [
    { line: "skein open", what: "see the addresses" },
    { line: "skein open --port 4117 --json", what: "for a script" },
  ],
  json: { servers: "the servers, each with url, token and address, the latest first" },
  store: "none",
  async run({ values, json, print, printJson, fail }) {
    const port = countOption(values, "port");
    const servers = (await listLocalServers())
      .filter(({ url }) => port === undefined || new URL(url).port === String(port))
      .map((server) => ({ ...server, address: addressWithToken(server) }));
    if (json) printJson({ servers });
    else for (const { address } of servers) print(address);
    if (servers.length > 0) return 0;
    fail("No server of yours runs here; start one with skein serve.");
    return 1;
  },
};
