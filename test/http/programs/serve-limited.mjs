// Serves sessions of a SQLite file to many users; their tokens are what `server-support.ts` would make of their names.
// node serve-limited.mjs <path> <users>
import { createServer } from "skein/http";
import { openSqliteStore } from "skein/sqlite";

const [path = "", users = "1"] = process.argv.slice(2);
const store = await openSqliteStore({ path });
const tokens = Array.from({ length: Number(users) }, (_, i) => ({
  token: `token-of-user${i}-0123456789`,
  userId: `user${i}`,
  admin: i === 0,
}));
const server = await createServer({ store, tokens });
process.stdout.write(`${await server.listen()}\n`);
