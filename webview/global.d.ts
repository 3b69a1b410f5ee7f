/** The wire types reach domain files that name Node's Buffer; pages never hold one. */
declare type Buffer = Uint8Array;
