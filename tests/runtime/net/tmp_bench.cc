
#include <gtest/gtest.h>
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <sys/wait.h>
#include <unistd.h>
#include <future>
#include "runtime/net/link.h"
#include "runtime/wire/codec.h"
namespace b { struct Rec { std::string id; std::int64_t a=1,b=2; std::vector<std::int32_t> t; std::vector<float> l; }; TANDEM_WIRE(Rec,id,a,b,t,l) }
namespace tandem::runtime { namespace {
TEST(Bench, encode) {
  b::Rec r{std::string(36,'x'),1,2,std::vector<std::int32_t>(512,7),std::vector<float>(512,1.f)};
  std::size_t n=0; const Time t0=steady_now();
  for(int i=0;i<200000;++i) n+=encode(r).size();
  const Time t1=steady_now(); const std::string s=encode(r);
  for(int i=0;i<200000;++i) n+=decode<b::Rec>(s)->t.size();
  const Time t2=steady_now();
  printf("encode %.3f us decode %.3f us %zu\n", seconds(t1-t0)*5, seconds(t2-t1)*5, n);
}
void child(int fd) {
  std::uint16_t port=0; if(read(fd,&port,2)!=2) _exit(1);
  IoThread io; LinkClient* c=nullptr;
  LinkClient link(io,Endpoint{.port=port},{.name="echo",.incarnation={1}},{},
    {.on_parcel=[&](const PeerId&,std::string&f){ if(!c) {fputs("c was null\n",stderr); return Offer::kLater;} if (Sent r=c->send("ok"); r!=Sent::kAccepted) {fprintf(stderr,"send %d\n",(int)r); abort();} (void)f; return Offer::kTaken;},
     .on_up=[&](const PeerId&,const Hello&){},.on_down=[](const PeerId&,const Down&){}});
  c=&link; std::uint64_t last=0; int same=0; while(true) { sleep(1); auto d=link.server(); std::uint64_t n=d?d->session.frames_delivered:0; same = n==last ? same+1 : 0; last=n;
   if(same>=8) { fprintf(stderr,"CHILD up=%d acc %lu del %lu res %lu early %lu in %lu out %lu stale %lu malf %lu ref %lu heard %.3f ago\n",(int)d.has_value(), d?d->session.frames_accepted:0,n,d?d->session.frames_resent:0,d?d->session.frames_early:0,d?d->session.packets_received:0,d?d->session.packets_sent:0,d?d->session.packets_stale:0,d?d->session.packets_malformed:0,d?d->session.frames_refused:0,d?seconds(steady_now()-d->last_heard):0.0); } if(getppid()==1) _exit(0); }
}
TEST(Bench, link) {
  int p[2]; ASSERT_EQ(pipe(p),0); const pid_t pid=fork(); if(pid==0) child(p[0]);
  IoThread io; std::mutex m; std::condition_variable cv; std::size_t got=0; bool up=false;
  std::unique_ptr<LinkServer> s;
  s=std::move(LinkServer::listen(io,{},{.name="c",.incarnation={1}},{},
    {.on_parcel=[&](const PeerId&,std::string&){ std::lock_guard l(m); ++got; cv.notify_one(); return Offer::kTaken;},
     .on_up=[&](const PeerId&,const Hello&){ std::lock_guard l(m); up=true; cv.notify_one();},
     .on_down=[](const PeerId&,const Down&){}})).value();
  std::uint16_t port=s->endpoint().port; (void)!write(p[1],&port,2);
  std::unique_lock l(m); if(!cv.wait_for(l,std::chrono::seconds(20),[&]{return up;})) {fputs("NEVER UP\n",stderr); kill(pid,9); abort();}; l.unlock();
  const PeerId e{"echo",{1}}; const std::string body(120,120);
  for(int round=0;round<3;++round){
    std::vector<double> us;
    for(int i=0;i<5000;++i){ const Time t=steady_now(); std::size_t want; {std::lock_guard g(m); want=got+1;}
      (void)s->send(e,body); std::unique_lock g(m); if(!cv.wait_for(g,std::chrono::seconds(20),[&]{return got>=want;})) {const auto d=s->status(e); fprintf(stderr,"STUCK i=%d up=%d\n",i,(int)d.has_value()); if(d) printf("acc %lu del %lu res %lu in %lu out %lu\n",d->session.frames_accepted,d->session.frames_delivered,d->session.frames_resent,d->session.packets_received,d->session.packets_sent); int st2=0; printf("child wait %d status %x\n",(int)waitpid(pid,&st2,WNOHANG),st2); kill(pid,9); abort();}; us.push_back(seconds(steady_now()-t)*1e6);}
    std::sort(us.begin(),us.end());
    std::size_t base; {std::lock_guard g(m); base=got;}
    const Time t=steady_now(); constexpr std::size_t N=400000; 
    for(std::size_t sent=0;sent<N;++sent){ while(s->send(e,body)!=Sent::kAccepted) std::abort();
      if(sent%256==0){std::unique_lock g(m); if(!cv.wait_for(g,std::chrono::seconds(20),[&]{return sent<(got-base)+1000;})) {const auto d=s->status(e); fprintf(stderr,"STUCK window up=%d got=%zu\n",(int)d.has_value(),got); if(d) fprintf(stderr,"acc %lu del %lu res %lu in %lu out %lu heard %.3f ago\n",d->session.frames_accepted,d->session.frames_delivered,d->session.frames_resent,d->session.packets_received,d->session.packets_sent,seconds(steady_now()-d->last_heard)); int st2=0; fprintf(stderr,"child wait %d status %x\n",(int)waitpid(pid,&st2,WNOHANG),st2); kill(pid,9); abort();}} }
    {std::unique_lock g(m); if(!cv.wait_for(g,std::chrono::seconds(20),[&]{return got-base>=N;})) {const auto d=s->status(e); fprintf(stderr,"STUCK end up=%d got=%zu\n",(int)d.has_value(),got); if(d) fprintf(stderr,"acc %lu del %lu res %lu in %lu out %lu heard %.3f ago\n",d->session.frames_accepted,d->session.frames_delivered,d->session.frames_resent,d->session.packets_received,d->session.packets_sent,seconds(steady_now()-d->last_heard)); int st2=0; fprintf(stderr,"child wait %d status %x\n",(int)waitpid(pid,&st2,WNOHANG),st2); kill(pid,9); abort();}}
    printf("sync p50 %.1f p99 %.1f us; pipelined %.0f/s\n",us[2500],us[4950],N/seconds(steady_now()-t));
  }
  const auto st=*s->status(e); printf("accepted %lu delivered %lu resent %lu repeated %lu packets out %lu in %lu\n",st.session.frames_accepted,st.session.frames_delivered,st.session.frames_resent,st.session.frames_repeated,st.session.packets_sent,st.session.packets_received); kill(pid,9); waitpid(pid,nullptr,0);
}
}}
