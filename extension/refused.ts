/** Something that is deliberately refused; shown like an error, with what to do instead. */
export class Refused extends Error {
  readonly kind: 'untrusted' | 'virtual' | 'attached';
  readonly remedy: string;
  constructor(kind: Refused['kind'], message: string, remedy: string) {
    super(message);
    this.name = 'Refused';
    this.kind = kind;
    this.remedy = remedy;
  }
}
