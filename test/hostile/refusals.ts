import { type Attack, type Attacker, must } from "./attack.ts";

/** Throws if the attacker has a session, which a refused request must not have created. */
export async function madeNone(attacker: Attacker): Promise<void> {
  const { body } = await attacker.call("GET", "/api/sessions");
  must(body.items.length === 0, "A refused request has made a session.");
}

/** Bytes that no client would send, after which nothing is made. */
export function sent(
  name: string,
  pieces: (attacker: Attacker) => readonly (string | Uint8Array)[],
  status: number | readonly number[] = 400,
): Omit<Attack, "kind"> {
  return {
    name,
    who: "user",
    send: (attacker) => attacker.raw(...pieces(attacker)),
    expect: { status, never: madeNone },
  };
}
