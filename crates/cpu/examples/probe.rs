use puna_cpu::kernels::Set;
use puna_cpu::kernels::linear::*;
use puna_quant::*;
fn now() -> f64 { let mut t = libc::timespec{tv_sec:0,tv_nsec:0}; unsafe{libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID,&mut t)}; t.tv_sec as f64+t.tv_nsec as f64*1e-9 }
fn main(){
  for ty in [ElementType::Q4_K, ElementType::Q6_K, ElementType::Q8_0, ElementType::Q4_1] {
   for cols in [256usize, 512, 1536] { for tokens in [1usize,2,4,8,24,48,96,192,504] {
    let n=tokens*cols; let x:Vec<f32>=(0..n).map(|i| (i*7919%1009) as f32-504.).collect();
    let kind=ty.codec().unwrap().activation();
    let (mut q,mut sc,mut s16,mut s32,mut s,mut ss)=(vec![0i8;n],vec![0f32;n/kind.block_len()],vec![0i16;n/16],vec![0i16;n/32],vec![0i32;n/32],vec![0f32;n/32]);
    let a = if kind==ActivationKind::Q8Block256 { quantize_q8_block256(&x,&mut q,&mut sc,&mut s16,&mut s32).unwrap(); Activations::Q8Block256{quants:&q,scales:&sc,sums16:&s16,sums32:&s32,tokens,cols} }
      else { quantize_q8_block32(&x,&mut q,&mut sc,&mut s,&mut ss).unwrap(); Activations::Q8Block32{quants:&q,scales:&sc,sums:&s,scaled_sums:&ss,tokens,cols} };
    let rb=ty.row_bytes(cols).unwrap(); let w=vec![0x11u8;rb*16]; let p=Panel{bytes:&w,row_bytes:rb,rows:16,cols};
    let mut out=vec![0f32;tokens*16]; let k=panel_fn(Set::Avx512,ty).unwrap();
    let reps=(20_000_000/(n*8)).max(1); let mut best=f64::MAX;
    for _ in 0..60 { let t=now(); for _ in 0..reps { unsafe{k(&p,&a,&mut out)} } best=best.min((now()-t)/reps as f64); }
    print!(" {tokens}:{:.0}", 2.0*16.0*n as f64/best/1e9);
   } println!("  {ty:?} cols {cols}"); } }
}
