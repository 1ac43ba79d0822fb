import { encode, type Call } from "./call.js";
import { isPetBatch } from "./checks.js";
import type { Origin } from "./errors.js";
import { checkRules, type CallOptions } from "./options.js";
import { Scope } from "./scope.js";
import type { Transport } from "./transport.js";
import type { NewPet, Pet, PetBatch, PetStatus } from "./types.js";

/** How many pets can be added at once. */
const maxBatch = 100;

const statuses: PetStatus[] = ["available", "pending", "sold"];

/** Options of `importPets`. The timeout is for the whole import. */
export interface ImportOptions extends Pick<CallOptions, "signal" | "timeout"> {
  /** Makes this another import than those of the same pets with another salt. */
  salt?: string;
  /** Called after every batch with the number of pets that have been added so far. */
  onBatch?: (added: number) => void;
}

/** Throws if the service would refuse a pet. */
function checkPet({ name, categoryId, status }: NewPet, at: string, origin: Origin): void {
  const rules: [unknown, string][] = [
    [typeof name === "string", "name must be a string"],
    [/\P{White_Space}/u.test(name), "name must not be white space only"],
    [[...String(name)].length <= 1024, "name must have at most 1024 characters"],
    [!/\0/.test(name), "name must not contain the character U+0000"],
    [!/\p{Surrogate}/u.test(name), "name must be valid Unicode"],
    [Number.isSafeInteger(categoryId), "categoryId must be an integer below 2⁵³"],
    [status === undefined || statuses.includes(status), `status must be one of ${statuses.join(", ")}`],
  ];
  checkRules(rules.map(([kept, text]) => [kept, `${at}.${text}`]), origin);
}

/** The call that adds pets at once. */
export function batchCall(pets: NewPet[], operation = "createPetBatch"): Call<PetBatch> {
  return { operation, method: "POST", path: "/pets/batch", body: { pets }, repeat: "replayed", check: isPetBatch(pets.length) };
}

/** Adds pets in batches whose keys are the same whenever the same pets are added. */
export async function importPets(transport: Transport, given: NewPet[], options: ImportOptions): Promise<Pet[]> {
  const { salt = "", onBatch, ...callOptions } = options;
  const origin = { operation: "importPets" };
  checkRules([[crypto.subtle, "importPets doesn't work on pages without https, where browsers have no crypto.subtle"]], origin);
  // The same pet always has the same text.
  const pets = given.map(({ name, categoryId, status }) => (status ? { name, categoryId, status } : { name, categoryId }));
  pets.forEach((pet, i) => checkPet(pet, `pets[${i}]`, origin));
  const input = new TextEncoder().encode(encode([salt, pets], origin));
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", input));
  const hex = Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const added: Pet[] = [];
  const scope = new Scope(callOptions);
  try {
    for (let number = 1; added.length < pets.length; number++) {
      const batch = pets.slice(added.length, added.length + maxBatch);
      const idempotencyKey = `import-${hex}-${number}-${batch.length}`;
      const { value } = await transport.do(batchCall(batch, "importPets"), { ...callOptions, idempotencyKey }, scope);
      added.push(...value.pets);
      onBatch?.(added.length);
    }
  } finally {
    scope.close();
  }
  return added;
}
