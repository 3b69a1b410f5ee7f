/** Something that is not done here on purpose; shown like an error, with the way on. */
export class Refused extends Error {
  readonly kind: 'untrusted' | 'virtual';
  readonly remedy: string;
  constructor(kind: Refused['kind'], message: string, remedy: string) {
    super(message);
    this.name = 'Refused';
    this.kind = kind;
    this.remedy = remedy;
  }
}
