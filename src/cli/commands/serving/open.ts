import { listLocalServers } from "../../../http/local-servers.ts";
import { addressWithToken } from "./address-with-token.ts";
import type { Command } from "../../command.ts";
import { countOption } from "../../options/option-values.ts";

/** Lists the servers that run for this user. */
export const open: Command = {
  name: "open",
  summary: "Print the address and token of each of your servers on this machine.",
  details:
    "It lists the servers that skein serve and npm start made a token for, latest first. Open an address in a browser to use the studio. The tokens are in files under SKEIN_HOME (or ~/.skein) that only you can read. Exits with 1 if there is no server.",
  arguments: [],
  options: { port: { value: "N", what: "only the server on this port" } },
  examples: [
    { line: "skein open", what: "print the addresses" },
    { line: "skein open --port 4117 --json", what: "for a script" },
  ],
  json: { servers: "the servers, each with url, token and address, latest first" },
  store: "none",
  async run({ values, json, print, printJson, fail }) {
    const port = countOption(values, "port");
    const servers = (await listLocalServers())
      .filter(({ url }) => port === undefined || new URL(url).port === String(port))
      .map((server) => ({ ...server, address: addressWithToken(server) }));
    if (json) printJson({ servers });
    else for (const { address } of servers) print(address);
    if (servers.length > 0) return 0;
    fail("None of your servers runs on this machine; start one with skein serve.");
    return 1;
  },
};
