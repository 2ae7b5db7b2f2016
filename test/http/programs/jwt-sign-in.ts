// #region jwt
import { importJWK, type JWK, jwtVerify } from "jose";
import type { Authenticate } from "skein/http";

export async function authenticateWith(jwk: JWK): Promise<Authenticate> {
  const key = await importJWK(jwk, "EdDSA");
  return async ({ headers }) => {
    const token = /^Bearer (\S+)$/.exec(headers.get("authorization") ?? "")?.[1];
    if (token === undefined) return null;
    try {
      const { payload } = await jwtVerify(token, key, { issuer: "https://id.example.org", audience: "skein" });
      const roles = (payload.roles ?? []) as string[];
      const may = (role: string) => roles.includes(role) || roles.includes("admin");
      return {
        userId: payload.sub ?? "",
        admin: roles.includes("admin"),
        may: { run: may("runner"), approve: may("approver"), files: may("files") },
        expiresAt: new Date((payload.exp ?? 0) * 1000).toISOString(),
      };
    } catch {
      return null; // Not signed by us, not for us, or expired: 401.
    }
  };
}
// #endregion
